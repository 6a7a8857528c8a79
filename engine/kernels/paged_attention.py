"""paged_attention: split-KV attention of a few query rows per request over a paged cache.

One family serves decode, draft decode, verify and draft extend. Row r of request b sees the
request's committed columns [0, prefix) and those of W tail slots for which its word has the bit
set. Blocks and splits lie at fixed columns, the tail continuing the prefix, so what a row sums does
not depend on the batch. In which order a block is summed depends on the tile, and the tile on how
many rows a request brings: an invariant launch has one tile and one path for all of them.

B requests   R rows per request   T = B * R   W tail slots of a request   Y columns, prefix and tail
Q query heads   C key/value heads   E head width   S splits   Z slots   P request rows
M table columns
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.attention_cuts import BLOCK_Y, RingCut, depth, tile_rows
from engine.kernels.attention_ring import attend_ring
from engine.kernels.combine import combine_splits
from engine.kernels.launch import (
    assert_dense,
    prefetch,
    release_successor,
    wait_for_producers,
)

INVARIANT_ROWS = 32
"""Rows of a request that an invariant tile has room for."""


@triton.jit
def _load_slots(row_ptr, tail_ptr, y_Y, prefix, end, HAS_TAIL: tl.constexpr):
    """Returns the slot of every column, the pad slot beyond the end."""
    slot_Y = tl.load(row_ptr + y_Y, mask=y_Y < prefix, other=0).to(tl.int64)
    if HAS_TAIL:
        in_tail_Y = (y_Y >= prefix) & (y_Y < end)
        slot_Y += tl.load(tail_ptr + y_Y - prefix, mask=in_tail_Y, other=0).to(tl.int64)
    return slot_Y


@triton.jit
def _load_columns(
    k_ptr, v_ptr, slot_Y, here_Y, STRIDE: tl.constexpr, E: tl.constexpr, BLOCK_E: tl.constexpr
):
    """Returns keys (E, Y) and values (Y, E) of the slots here, zeros of the others."""
    e_E = tl.arange(0, BLOCK_E)
    at_Y = slot_Y.to(tl.int64) * STRIDE
    here_EY = here_Y[None, :] & (e_E[:, None] < E)
    here_YE = here_Y[:, None] & (e_E[None, :] < E)
    k_EY = tl.load(k_ptr + at_Y[None, :] + e_E[:, None], mask=here_EY, other=0.0)
    v_YE = tl.load(v_ptr + at_Y[:, None] + e_E[None, :], mask=here_YE, other=0.0)
    return k_EY, v_YE


@triton.jit
def _attend_block(
    q_NE, k_ptr, v_ptr, row_ptr, tail_ptr, word_N, start, prefix, end, top_N, sum_N,
    acc_NE, scale, STRIDE: tl.constexpr, E: tl.constexpr, BLOCK_E: tl.constexpr,
    BLOCK_Y: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """Folds the columns [start, start + BLOCK_Y) into the running softmax of each row."""
    y_Y = start + tl.arange(0, BLOCK_Y)
    e_E = tl.arange(0, BLOCK_E)
    slot_Y = _load_slots(row_ptr, tail_ptr, y_Y, prefix, end, TAIL)
    at_Y = slot_Y * STRIDE
    k_EY = tl.load(k_ptr + at_Y[None, :] + e_E[:, None], mask=e_E[:, None] < E, other=0.0)
    v_YE = tl.load(v_ptr + at_Y[:, None] + e_E[None, :], mask=e_E[None, :] < E, other=0.0)
    return _fold_block(
        q_NE, k_EY, v_YE, y_Y, word_N, prefix, end, top_N, sum_N, acc_NE, scale, TAIL
    )


@triton.jit
def _fold_block(
    q_NE, k_EY, v_YE, y_Y, word_N, prefix, end, top_N, sum_N, acc_NE, scale, TAIL: tl.constexpr
):
    """Folds these columns into the running softmax of each row."""
    score_NY = tl.dot(q_NE, k_EY, input_precision="ieee") * scale
    if TAIL:
        in_tail_Y = (y_Y >= prefix) & (y_Y < end)
        bit_Y = tl.minimum(tl.maximum(y_Y - prefix, 0), 63).to(tl.int64)
        seen_NY = ((word_N[:, None] >> bit_Y[None, :]) & 1) & in_tail_Y[None, :].to(tl.int64)
        score_NY = tl.where((y_Y < prefix)[None, :] | (seen_NY != 0), score_NY, float("-inf"))
    new_top_N = tl.maximum(top_N, tl.max(score_NY, axis=1))
    # A row that has seen nothing yet keeps -inf; subtracting it from itself would be NaN.
    base_N = tl.where(new_top_N == float("-inf"), 0.0, new_top_N)
    p_NY = tl.exp2(score_NY - base_N[:, None])
    keep_N = tl.exp2(top_N - base_N)
    sum_N = sum_N * keep_N + tl.sum(p_NY, axis=1)
    acc_NE = acc_NE * keep_N[:, None]
    acc_NE = tl.dot(p_NY.to(v_YE.dtype), v_YE, acc_NE, input_precision="ieee")
    return new_top_N, sum_N, acc_NE


@triton.jit
def _attend_split(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    table_stride,
    row_ptr,
    prefix_ptr,
    tail_ptr,
    word_ptr,
    part_ptr,
    weight_ptr,
    tail,
    columns,
    scale,
    R: tl.constexpr,
    GROUP: tl.constexpr,
    C: tl.constexpr,
    E: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    ONE: tl.constexpr,
    DIRECT: tl.constexpr,
    INVARIANT: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """One split of one key/value head: N = R * GROUP rows share every key read.

    With DIRECT there is one split, and its part is the output itself. With ONE a split is one
    block, whose committed columns are in registers before the producer is done.
    """
    release_successor(CHAINED)
    split = tl.program_id(0)
    head = tl.program_id(1)
    request = tl.program_id(2)
    prefix = tl.load(prefix_ptr + request).to(tl.int32)
    end = prefix + tail
    first = split * columns
    if first >= end:
        return
    STRIDE: tl.constexpr = C * E
    last = tl.minimum(first + columns, end)
    row_ptr = table_ptr + tl.load(row_ptr + request).to(tl.int64) * table_stride
    tail_ptr += request * tail
    k_ptr += head * E
    v_ptr += head * E
    if ONE:
        y_Y = first + tl.arange(0, BLOCK_Y)
        old_Y, new_Y = y_Y < prefix, (y_Y >= prefix) & (y_Y < end)
        slot_Y = tl.load(row_ptr + y_Y, mask=old_Y, other=0)
        new_slot_Y = tl.load(tail_ptr + y_Y - prefix, mask=new_Y, other=0)
        k_EY, v_YE = _load_columns(k_ptr, v_ptr, slot_Y, old_Y, STRIDE, E, BLOCK_E)
    elif CHAINED:
        LINES: tl.constexpr = BLOCK_E // 64 if BLOCK_E > 64 else 1
        # Committed columns were written before this forward began: read ahead of the producer.
        y_Y = first + tl.arange(0, BLOCK_Y)
        slot_Y = _load_slots(row_ptr, tail_ptr, y_Y, prefix, end, False)
        line_Y = slot_Y[:, None] * STRIDE + tl.arange(0, LINES)[None, :] * 64
        prefetch(k_ptr + line_Y)
        prefetch(v_ptr + line_Y)
    wait_for_producers(CHAINED)

    n_N = tl.arange(0, BLOCK_N)
    e_E = tl.arange(0, BLOCK_E)
    here_N = n_N < R * GROUP
    token_N = request * R + n_N // GROUP
    head_N = (token_N * C + head) * GROUP + n_N % GROUP
    here_NE = here_N[:, None] & (e_E[None, :] < E)
    q_NE = tl.load(q_ptr + head_N[:, None] * E + e_E[None, :], mask=here_NE, other=0.0)
    word_N = tl.load(word_ptr + token_N, mask=here_N, other=0)

    top_N = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    sum_N = tl.zeros((BLOCK_N,), tl.float32)
    acc_NE = tl.zeros((BLOCK_N, BLOCK_E), tl.float32)
    if ONE:
        if last > prefix:
            new_k_EY, new_v_YE = _load_columns(k_ptr, v_ptr, new_slot_Y, new_Y, STRIDE, E, BLOCK_E)
            k_EY = tl.where(new_Y[None, :], new_k_EY, k_EY)
            v_YE = tl.where(new_Y[:, None], new_v_YE, v_YE)
        top_N, sum_N, acc_NE = _fold_block(
            q_NE, k_EY, v_YE, y_Y, word_N, prefix, end, top_N, sum_N, acc_NE, scale, True
        )
    else:
        # Without a mask the compiler may fuse scale and difference, which rounds once less.
        whole = first if INVARIANT else tl.minimum(last, prefix // BLOCK_Y * BLOCK_Y)
        for start in tl.range(first, whole, BLOCK_Y):
            top_N, sum_N, acc_NE = _attend_block(
                q_NE, k_ptr, v_ptr, row_ptr, tail_ptr, word_N, start, prefix, end, top_N,
                sum_N, acc_NE, scale, STRIDE, E, BLOCK_E, BLOCK_Y, False,
            )  # fmt: skip
        for start in tl.range(tl.maximum(first, whole), last, BLOCK_Y):
            top_N, sum_N, acc_NE = _attend_block(
                q_NE, k_ptr, v_ptr, row_ptr, tail_ptr, word_N, start, prefix, end, top_N,
                sum_N, acc_NE, scale, STRIDE, E, BLOCK_E, BLOCK_Y, True,
            )  # fmt: skip
    part_N = head_N.to(tl.int64) * tl.num_programs(0) + split
    # A row that saw nothing has a sum of 0 and a top of -inf: its part is 0, its weight -inf.
    whole_N = tl.where(sum_N > 0.0, sum_N, 1.0)
    part_NE = part_ptr + part_N[:, None] * E + e_E[None, :]
    mean_NE = acc_NE / whole_N[:, None]
    tl.store(part_NE, mean_NE.to(part_ptr.dtype.element_ty), mask=here_NE)
    if not DIRECT:
        tl.store(weight_ptr + part_N, top_N + tl.log2(whole_N), mask=here_N)


def paged_attention(
    q_TQE: Tensor,
    key_ZCE: Tensor,
    value_ZCE: Tensor,
    *,
    table_PM: Tensor,
    row_B: Tensor,
    prefix_B: Tensor,
    tail_BW: Tensor,
    word_T: Tensor,
    split: int,
    part_TQSE: Tensor,
    weight_TQS: Tensor,
    out_TQE: Tensor,
    ring: RingCut | None = None,
    invariant: bool = False,
    chained: bool = False,
) -> Tensor:
    """Writes each row's attention into out_TQE, zeros where a row sees nothing.

    part and weight are f32 scratch for S splits of `split` columns (a multiple of 64), unused when
    S is 1; S * split must reach the longest prefix + W of the batch. `ring` cuts the kernel of
    attention_ring, which takes the place of the portable one here. Launched chained, the tables,
    the lengths and the committed columns were complete before the forward began. `invariant` takes
    at most INVARIANT_ROWS rows a request.
    """
    tokens, heads, width = q_TQE.shape
    requests, tail = tail_BW.shape
    kv_heads, splits = key_ZCE.shape[1], weight_TQS.shape[-1]
    rows, group = tokens // requests, heads // kv_heads
    block_e = max(16, triton.next_power_of_2(width))  # a product sums at least 16 terms
    assert not invariant or rows <= INVARIANT_ROWS, "the plan refuses more rows"
    block_n = tile_rows((INVARIANT_ROWS if invariant else rows) * group)
    assert split % BLOCK_Y == 0, "a split is whole blocks"
    assert_dense(q_TQE, key_ZCE, value_ZCE, row_B, prefix_B, tail_BW, word_T)
    # One path for every batch: there an invariant launch takes its one split through the scratch.
    direct = splits == 1 and not invariant
    operands = (
        q_TQE, key_ZCE, value_ZCE, table_PM, table_PM.stride(0), row_B, prefix_B, tail_BW,
        word_T, out_TQE if direct else part_TQSE, weight_TQS, tail, split,
        math.log2(math.e) / math.sqrt(width), rows, group, kv_heads, width, block_n,
    )  # fmt: skip
    if ring is not None:
        assert not invariant, "the ring sums in another order"
        assert direct or split % ring.block == 0, "a split is whole blocks of the ring"
        attend_ring[splits, kv_heads, requests](
            *operands, DIRECT=direct, CHAINED=chained, launch_pdl=chained, **ring.options()
        )
    else:
        block_y, warps, stages = (
            (BLOCK_Y, 8, 2)
            if invariant
            else depth(block_n, width, split, requests * kv_heads * splits)
        )
        _attend_split[splits, kv_heads, requests](
            *operands, BLOCK_E=block_e, BLOCK_Y=block_y, ONE=split == block_y, DIRECT=direct,
            INVARIANT=invariant, CHAINED=chained, launch_pdl=chained, num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
    if not direct:
        combine_splits(
            part_TQSE, weight_TQS, prefix_B, out_TQE, tail=tail, split=split,
            invariant=invariant, chained=chained,
        )  # fmt: skip
    return out_TQE


def paged_attention_reference(
    q_TQE: Tensor,
    key_ZCE: Tensor,
    value_ZCE: Tensor,
    *,
    table_PM: Tensor,
    row_B: Tensor,
    prefix_B: Tensor,
    tail_BW: Tensor,
    mask_BRW: Tensor,
) -> Tensor:
    """The same, one request at a time, in the dtype of its inputs."""
    heads, width = q_TQE.shape[1:]
    repeat = heads // key_ZCE.shape[1]
    out: list[Tensor] = []
    for q_RQE, row, prefix, tail_W, mask_RW in zip(
        q_TQE.unflatten(0, mask_BRW.shape[:2]), row_B, prefix_B, tail_BW, mask_BRW, strict=True
    ):
        slots_Y = torch.cat((table_PM[row, : int(prefix)].long(), tail_W.long()))
        k_QYE = key_ZCE[slots_Y].repeat_interleave(repeat, dim=1).transpose(0, 1)
        v_QYE = value_ZCE[slots_Y].repeat_interleave(repeat, dim=1).transpose(0, 1)
        seen_RY = torch.cat((mask_RW.new_ones(len(mask_RW), int(prefix)), mask_RW), dim=-1)
        score_QRY = q_RQE.transpose(0, 1) @ k_QYE.transpose(1, 2) / math.sqrt(width)
        p_QRY = torch.softmax(score_QRY.masked_fill(~seen_RY, float("-inf")), dim=-1)
        out.append((p_QRY.nan_to_num(0.0) @ v_QYE).transpose(0, 1))
    return torch.cat(out)
