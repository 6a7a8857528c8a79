"""combine: the splits of split-KV attention, each a mean of its own, as one mean.

T rows   B requests   R rows per request   Q query heads   E head width   S splits
"""

import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import release_successor, wait_for_producers


@triton.jit
def _combine_splits(
    part_ptr,
    weight_ptr,
    prefix_ptr,
    y_ptr,
    tail,
    columns,
    splits,
    R: tl.constexpr,
    Q: tl.constexpr,
    E: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_S: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """The splits of BLOCK_H heads of one row, BLOCK_S at a time."""
    release_successor(CHAINED)
    h_H = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)
    token = tl.program_id(1)
    used = tl.cdiv(tl.load(prefix_ptr + token // R).to(tl.int32) + tail, columns)
    e_E = tl.arange(0, BLOCK_E)
    row_H = token.to(tl.int64) * Q + h_H
    here_HE = (h_H[:, None] < Q) & (e_E[None, :] < E)
    wait_for_producers(CHAINED)
    top_H = tl.full((BLOCK_H,), float("-inf"), tl.float32)
    total_H = tl.zeros((BLOCK_H,), tl.float32)
    acc_HE = tl.zeros((BLOCK_H, BLOCK_E), tl.float32)
    for start in tl.range(0, used, BLOCK_S):
        s_S = start + tl.arange(0, BLOCK_S)
        here_HS = (h_H[:, None] < Q) & (s_S[None, :] < used)
        at_HS = row_H[:, None] * splits + s_S[None, :]
        weight_HS = tl.load(weight_ptr + at_HS, mask=here_HS, other=float("-inf"))
        part_HSE = tl.load(
            part_ptr + at_HS[:, :, None] * E + e_E[None, None, :],
            mask=here_HS[:, :, None] & (e_E[None, None, :] < E),
            other=0.0,
        )
        new_top_H = tl.maximum(top_H, tl.max(weight_HS, axis=1))
        base_H = tl.where(new_top_H == float("-inf"), 0.0, new_top_H)
        p_HS = tl.exp2(weight_HS - base_H[:, None])
        keep_H = tl.exp2(top_H - base_H)
        total_H = total_H * keep_H + tl.sum(p_HS, axis=1)
        acc_HE = acc_HE * keep_H[:, None] + tl.sum(part_HSE * p_HS[:, :, None], axis=1)
        top_H = new_top_H
    acc_HE /= tl.where(total_H > 0.0, total_H, 1.0)[:, None]
    y_HE = y_ptr + row_H[:, None] * E + e_E[None, :]
    tl.store(y_HE, acc_HE.to(y_ptr.dtype.element_ty), mask=here_HE)


def combine_splits(
    part_TQSE: Tensor,
    weight_TQS: Tensor,
    prefix_B: Tensor,
    out_TQE: Tensor,
    *,
    tail: int,
    split: int,
    invariant: bool,
    chained: bool,
) -> None:
    """Writes to out_TQE the mean of each row's parts, f32, weighted by 2**weight; zeros where no
    part saw a column. Of S splits a request of `prefix + tail` columns has those of `split` columns
    that it begins.
    """
    tokens, heads, splits, width = part_TQSE.shape
    block_h, block_s = (1, 32) if invariant else _together(tokens * heads, splits)
    _combine_splits[triton.cdiv(heads, block_h), tokens](
        part_TQSE, weight_TQS, prefix_B, out_TQE, tail, split, splits, tokens // len(prefix_B),
        heads, width, BLOCK_H=block_h, BLOCK_E=max(16, triton.next_power_of_2(width)),
        BLOCK_S=block_s, CHAINED=chained, launch_pdl=chained, num_warps=1,
    )  # fmt: skip


def _together(heads: int, splits: int) -> tuple[int, int]:
    """How many of all heads, and how many of their splits, one program combines at once."""
    block_s = min(32, triton.next_power_of_2(splits))
    return min(8, 32 // block_s, max(1, triton.next_power_of_2(heads // 512))), block_s
