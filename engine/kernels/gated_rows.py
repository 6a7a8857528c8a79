"""gated_rows: silu(norm(x) @ gate.T) * (norm(x) @ up.T) for a few rows, in one pass over both matrices.

T tokens   I inputs   F feed-forward width; the weight stacks gate over up: (2F, I)
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.row_tile import RowTile, ScaledRows, accumulate_rows


@triton.jit
def split_halves(y_OT, BLOCK_O: tl.constexpr, BLOCK_T: tl.constexpr):
    """Returns the first and the last BLOCK_O / 2 rows of y_OT."""
    pair = tl.reshape(y_OT, (2, BLOCK_O // 2, BLOCK_T))
    return tl.split(tl.permute(pair, (1, 2, 0)))


@triton.jit(do_not_specialize=["tokens"])
def _gated_rows(
    x_ptr,
    w_ptr,
    square_ptr,
    y_ptr,
    tokens,
    eps,
    I: tl.constexpr,
    F: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
    PREFETCH: tl.constexpr,
    CHAINED: tl.constexpr,
):
    HALF: tl.constexpr = BLOCK_O // 2
    offset_O = tl.arange(0, BLOCK_O)
    first = tl.program_id(0) * HALF
    token_T = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    row_O = tl.minimum(first + offset_O % HALF, F - 1) + (offset_O // HALF) * F
    y_OT = accumulate_rows(
        x_ptr, w_ptr, square_ptr, row_O, token_T, tokens, eps, I, PARTS, BLOCK_G,
        BLOCK_O, BLOCK_I, BLOCK_T, SLICES, STAGES, PREFETCH, CHAINED,
    )  # fmt: skip
    gate_FT, up_FT = split_halves(y_OT, BLOCK_O, BLOCK_T)
    act_FT = gate_FT / (1.0 + tl.exp(-gate_FT)) * up_FT
    f_F = first + tl.arange(0, HALF)
    here_FT = (f_F[:, None] < F) & (token_T[None, :] < tokens)
    tl.store(
        y_ptr + token_T[None, :] * F + f_F[:, None],
        act_FT.to(y_ptr.dtype.element_ty),
        mask=here_FT,
    )


def gated_rows(
    x: ScaledRows,
    weight_OI: Tensor,
    *,
    tile: RowTile,
    out_TF: Tensor,
    eps: float,
    chained: bool = False,
) -> Tensor:
    """Writes silu(gate) * up of the (normalised) rows into out_TF."""
    tokens, inputs = x.x_TI.shape
    parts = x.square_TG.shape[1]
    width = weight_OI.shape[0] // 2
    grid = (triton.cdiv(width, tile.block_o // 2), triton.cdiv(tokens, tile.block_t))
    _gated_rows[grid](
        x.x_TI, weight_OI, x.square_TG, out_TF, tokens, eps, inputs, width,
        parts, triton.next_power_of_2(parts),
        CHAINED=chained, launch_pdl=chained, **tile.options(),
    )  # fmt: skip
    return out_TF


def gated_rows_reference(
    x_TI: Tensor, weight_OI: Tensor, *, gain_I: Tensor | None = None, eps: float = 0.0
) -> Tensor:
    """The same in the dtype of x: what gated_rows is held to, on float64 inputs."""
    if gain_I is not None:
        x_TI = x_TI * torch.rsqrt(x_TI.pow(2).mean(-1, keepdim=True) + eps) * gain_I
    gate_TF, up_TF = (x_TI @ weight_OI.T).chunk(2, dim=-1)
    return torch.nn.functional.silu(gate_TF) * up_TF
