"""norm: residual add and RMS norm of whole rows, for forwards too wide for the fused linear
kernels.

T tokens   H hidden width   S parts of a product (engine.kernels.wide_rows)
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense, release_successor, wait_for_producers

FEW_TOKENS = 128
"""Rows up to which a program of more warps is faster: few programs, each with little to do."""


@triton.jit
def _add_norm(
    x_ptr,
    residual_ptr,
    gain_ptr,
    sum_ptr,
    y_ptr,
    eps,
    H: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_H: tl.constexpr,
    ADD: tl.constexpr,
    CHAINED: tl.constexpr,
):
    release_successor(CHAINED)
    h_H = tl.arange(0, BLOCK_H)
    here_H = h_H < H
    gain_H = tl.load(gain_ptr + h_H, mask=here_H, other=0.0).to(tl.float32)
    at_H = tl.program_id(0).to(tl.int64) * H + h_H
    part = tl.num_programs(0).to(tl.int64) * H
    wait_for_producers(CHAINED)
    wide_H = tl.load(x_ptr + at_H, mask=here_H, other=0.0).to(tl.float32)
    for other in tl.static_range(1, PARTS):
        wide_H += tl.load(x_ptr + other * part + at_H, mask=here_H, other=0.0).to(tl.float32)
    if ADD:
        wide_H += tl.load(residual_ptr + at_H, mask=here_H, other=0.0).to(tl.float32)
        rounded_H = wide_H.to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + at_H, rounded_H, mask=here_H)
        wide_H = rounded_H.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide_H * wide_H, axis=0) / H + eps)
    tl.store(y_ptr + at_H, (wide_H * scale * gain_H).to(y_ptr.dtype.element_ty), mask=here_H)


def rms_norm(
    x: Tensor,
    gain_H: Tensor,
    *,
    eps: float,
    residual_TH: Tensor | None = None,
    chained: bool = False,
) -> tuple[Tensor, Tensor]:
    """Returns x (+ residual), and its norm times the gain; the mean of squares is taken in f32.

    x is (T, H), or with a residual (S, T, H): parts that are added up first.
    """
    tokens, width = x.shape[-2:]
    parts = x.shape[0] if x.dim() == 3 else 1
    assert parts == 1 or residual_TH is not None, "parts take the residual's dtype"
    assert_dense(x, gain_H)
    sum_TH = x if residual_TH is None else torch.empty_like(residual_TH)
    y_TH = torch.empty_like(sum_TH)
    if tokens:
        _add_norm[tokens,](
            x, residual_TH, gain_H, sum_TH, y_TH, eps, width, parts,
            BLOCK_H=triton.next_power_of_2(width), ADD=residual_TH is not None,
            CHAINED=chained, launch_pdl=chained, num_warps=16 if tokens <= FEW_TOKENS else 8,
        )  # fmt: skip
    return sum_TH, y_TH


def rms_norm_reference(
    x_TH: Tensor, gain_H: Tensor, *, eps: float, residual_TH: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The same in torch."""
    if residual_TH is not None:
        x_TH = x_TH + residual_TH
    return x_TH, torch.nn.functional.rms_norm(x_TH, (x_TH.shape[-1],), gain_H, eps)
