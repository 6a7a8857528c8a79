"""paged_attention: split-KV attention of a few query rows per request over a paged cache.

One family serves draft decode, verify and draft extend. A request sees its table columns [0, L + C):
L committed ones, visible to all of its rows, and C in flight, visible as a 64-bit word per row says (bit
i: column L + i). Blocks and splits lie at fixed table columns, so what a row sums, and in which order,
does not depend on the batch nor on how many rows a request brings.

B requests   Q rows of a request   H query heads   J key/value heads   E head width   S splits
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import prefetch, release_successor, wait_for_producers

BLOCK_C = 64
"""Table columns of one tile; at most this many may be in flight."""


@triton.jit
def _attend_block(
    q_ME, k_ptr, v_ptr, row_ptr, start, end, prefix, visible_M, top_M, sum_M, acc_ME, scale,
    STRIDE: tl.constexpr, E: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Folds the columns [start, start + BLOCK_C) into the running softmax of each row."""
    c_C = start + tl.arange(0, BLOCK_C)
    e_E = tl.arange(0, BLOCK_E)
    slot_C = tl.load(row_ptr + c_C, mask=c_C < end, other=0).to(tl.int64)
    k_EC = tl.load(k_ptr + slot_C[None, :] * STRIDE + e_E[:, None], mask=e_E[:, None] < E, other=0.0)
    v_CE = tl.load(v_ptr + slot_C[:, None] * STRIDE + e_E[None, :], mask=e_E[None, :] < E, other=0.0)
    score_MC = tl.dot(q_ME, k_EC, input_precision="ieee") * scale
    if MASKED:
        bit_C = tl.minimum(tl.maximum(c_C - prefix, 0), 63).to(tl.int64)
        seen_MC = ((visible_M[:, None] >> bit_C[None, :]) & 1) != 0
        seen_MC = ((c_C < prefix)[None, :] | seen_MC) & (c_C < end)[None, :]
        score_MC = tl.where(seen_MC, score_MC, float("-inf"))
    new_top_M = tl.maximum(top_M, tl.max(score_MC, axis=1))
    # A row that has seen nothing yet keeps -inf; subtracting it from itself would be NaN.
    base_M = tl.where(new_top_M == float("-inf"), 0.0, new_top_M)
    p_MC = tl.exp2(score_MC - base_M[:, None])
    keep_M = tl.exp2(top_M - base_M)
    sum_M = sum_M * keep_M + tl.sum(p_MC, axis=1)
    acc_ME = acc_ME * keep_M[:, None]
    acc_ME = tl.dot(p_MC.to(v_CE.dtype), v_CE, acc_ME, input_precision="ieee")
    return new_top_M, sum_M, acc_ME


@triton.jit
def _attend_split(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    table_stride,
    row_ptr,
    prefix_ptr,
    visible_ptr,
    part_ptr,
    weight_ptr,
    columns,
    scale,
    Q: tl.constexpr,
    G: tl.constexpr,
    J: tl.constexpr,
    E: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_C: tl.constexpr,
    SPLIT: tl.constexpr,
    CHAINED: tl.constexpr,
):
    release_successor(CHAINED)
    split = tl.program_id(0)
    head = tl.program_id(1)
    request = tl.program_id(2)
    prefix = tl.load(prefix_ptr + request).to(tl.int32)
    end = prefix + columns
    first = split * SPLIT
    if first >= end:
        return
    STRIDE: tl.constexpr = J * E
    last = tl.minimum(first + SPLIT, end)
    row_ptr = table_ptr + tl.load(row_ptr + request).to(tl.int64) * table_stride
    k_ptr += head * E
    v_ptr += head * E
    if CHAINED:
        # The committed columns were written before this forward began: read ahead of the producer.
        c_C = first + tl.arange(0, BLOCK_C)
        slot_C = tl.load(row_ptr + c_C, mask=c_C < prefix, other=0).to(tl.int64)
        line_C = slot_C[:, None] * STRIDE + tl.arange(0, BLOCK_E // 64)[None, :] * 64
        prefetch(k_ptr + line_C)
        prefetch(v_ptr + line_C)
    wait_for_producers(CHAINED)

    m_M = tl.arange(0, BLOCK_M)
    e_E = tl.arange(0, BLOCK_E)
    here_M = m_M < Q * G
    token_M = request * Q + m_M // G
    head_M = (token_M * J + head) * G + m_M % G
    here_ME = here_M[:, None] & (e_E[None, :] < E)
    q_ME = tl.load(q_ptr + head_M[:, None] * E + e_E[None, :], mask=here_ME, other=0.0)
    visible_M = tl.load(visible_ptr + token_M, mask=here_M, other=0)

    top_M = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    sum_M = tl.zeros((BLOCK_M,), tl.float32)
    acc_ME = tl.zeros((BLOCK_M, BLOCK_E), tl.float32)
    whole = tl.minimum(last, prefix // BLOCK_C * BLOCK_C)
    for start in tl.range(first, whole, BLOCK_C):
        top_M, sum_M, acc_ME = _attend_block(
            q_ME, k_ptr, v_ptr, row_ptr, start, end, prefix, visible_M, top_M, sum_M, acc_ME,
            scale, STRIDE, E, BLOCK_E, BLOCK_C, False,
        )  # fmt: skip
    for start in tl.range(tl.maximum(first, whole), last, BLOCK_C):
        top_M, sum_M, acc_ME = _attend_block(
            q_ME, k_ptr, v_ptr, row_ptr, start, end, prefix, visible_M, top_M, sum_M, acc_ME,
            scale, STRIDE, E, BLOCK_E, BLOCK_C, True,
        )  # fmt: skip
    part_M = head_M.to(tl.int64) * tl.num_programs(0) + split
    tl.store(
        part_ptr + part_M[:, None] * E + e_E[None, :],
        acc_ME / tl.where(sum_M > 0.0, sum_M, 1.0)[:, None],
        mask=here_ME,
    )
    tl.store(weight_ptr + part_M, top_M + tl.log2(sum_M), mask=here_M)


@triton.jit
def _combine_splits(
    part_ptr,
    weight_ptr,
    prefix_ptr,
    y_ptr,
    columns,
    splits,
    Q: tl.constexpr,
    H: tl.constexpr,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_S: tl.constexpr,
    SPLIT: tl.constexpr,
    CHAINED: tl.constexpr,
):
    release_successor(CHAINED)
    head = tl.program_id(0)
    token = tl.program_id(1)
    used = tl.cdiv(tl.load(prefix_ptr + token // Q).to(tl.int32) + columns, SPLIT)
    e_E = tl.arange(0, BLOCK_E)
    row = (token * H + head).to(tl.int64)
    wait_for_producers(CHAINED)
    top = float("-inf")
    total = 0.0
    acc_E = tl.zeros((BLOCK_E,), tl.float32)
    for start in tl.range(0, used, BLOCK_S):
        s_S = start + tl.arange(0, BLOCK_S)
        here_S = s_S < used
        weight_S = tl.load(weight_ptr + row * splits + s_S, mask=here_S, other=float("-inf"))
        part_SE = tl.load(
            part_ptr + (row * splits + s_S)[:, None] * E + e_E[None, :],
            mask=here_S[:, None] & (e_E[None, :] < E),
            other=0.0,
        )
        new_top = tl.maximum(top, tl.max(weight_S, axis=0))
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        p_S = tl.exp2(weight_S - base)
        keep = tl.exp2(top - base)
        total = total * keep + tl.sum(p_S, axis=0)
        acc_E = acc_E * keep + tl.sum(part_SE * p_S[:, None], axis=0)
        top = new_top
    acc_E /= tl.where(total > 0.0, total, 1.0)
    tl.store(y_ptr + row * E + e_E, acc_E.to(y_ptr.dtype.element_ty), mask=e_E < E)


def paged_attention(
    q_THE: Tensor,
    key_CJE: Tensor,
    value_CJE: Tensor,
    *,
    table_PM: Tensor,
    row_B: Tensor,
    prefix_B: Tensor,
    visible_T: Tensor,
    columns: int,
    split: int,
    part_THSE: Tensor,
    weight_THS: Tensor,
    out_THE: Tensor,
    warps: int = 4,
    chained: bool = False,
) -> Tensor:
    """Writes each row's attention over its visible columns into out_THE (zeros where it sees none).

    part and weight are f32 scratch for S splits of `split` columns (a multiple of 64); rows of a
    request are adjacent. S * split must reach the longest prefix + columns of the batch.
    """
    tokens, heads, width = q_THE.shape
    requests, kv_heads, splits = prefix_B.shape[0], key_CJE.shape[1], weight_THS.shape[-1]
    rows, group = tokens // requests, heads // kv_heads
    block_e = triton.next_power_of_2(width)
    _attend_split[(splits, kv_heads, requests)](
        q_THE, key_CJE, value_CJE, table_PM, table_PM.stride(0), row_B, prefix_B, visible_T,
        part_THSE, weight_THS, columns, math.log2(math.e) / math.sqrt(width),
        rows, group, kv_heads, width, BLOCK_M=max(16, triton.next_power_of_2(rows * group)),
        BLOCK_E=block_e, BLOCK_C=BLOCK_C, SPLIT=split, CHAINED=chained,
        launch_pdl=chained, num_warps=warps, num_stages=2,
    )  # fmt: skip
    _combine_splits[(heads, tokens)](
        part_THSE, weight_THS, prefix_B, out_THE, columns, splits, rows, heads, width,
        BLOCK_E=block_e, BLOCK_S=16, SPLIT=split, CHAINED=chained,
        launch_pdl=chained, num_warps=4,
    )  # fmt: skip
    return out_THE


def paged_attention_reference(
    q_THE: Tensor,
    key_CJE: Tensor,
    value_CJE: Tensor,
    *,
    table_PM: Tensor,
    row_B: Tensor,
    prefix_B: Tensor,
    visible_T: Tensor,
    columns: int,
) -> Tensor:
    """The same, one request at a time, in the dtype of its inputs."""
    tokens, heads, width = q_THE.shape
    rows = tokens // prefix_B.shape[0]
    out_THE = torch.empty_like(q_THE)
    for b, (row, prefix) in enumerate(zip(row_B.tolist(), prefix_B.tolist(), strict=True)):
        slots = table_PM[row, : prefix + columns].long()
        repeat = heads // key_CJE.shape[1]
        k_HCE = key_CJE[slots].repeat_interleave(repeat, dim=1).transpose(0, 1)
        v_HCE = value_CJE[slots].repeat_interleave(repeat, dim=1).transpose(0, 1)
        here = slice(b * rows, (b + 1) * rows)
        bit = torch.arange(columns, device=q_THE.device)
        flight = (visible_T[here, None] >> bit) & 1 != 0
        seen = torch.cat((flight.new_ones(rows, prefix), flight), dim=-1)
        score = q_THE[here].transpose(0, 1) @ k_HCE.transpose(1, 2) / math.sqrt(width)
        p = torch.softmax(score.masked_fill(~seen, float("-inf")), dim=-1).nan_to_num(0.0)
        out_THE[here] = (p @ v_HCE).transpose(0, 1)
    return out_THE
