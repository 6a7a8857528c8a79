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
from torch import Tensor

from engine.kernels.attention_cuts import BLOCK_Y, RingCut, depth, tile_rows
from engine.kernels.attention_ring import attend_ring
from engine.kernels.attention_split import attend_split
from engine.kernels.combine import combine_splits
from engine.kernels.launch import assert_dense

INVARIANT_ROWS = 32
"""Rows of a request that an invariant tile has room for."""


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
        attend_split[splits, kv_heads, requests](
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
