"""gated_rows: silu(norm(x) @ gate.T) * (norm(x) @ up.T) for a few rows, in one pass over both
matrices.

T tokens   I inputs   U feed-forward width; the weight stacks gate over up: (2U, I)
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.gated_stream import gated_stream
from engine.kernels.launch import assert_dense
from engine.kernels.row_tile import (
    RowTile,
    ScaledRows,
    accumulate_rows,
    first_weights,
    split_halves,
)
from engine.kernels.stream_tile import StreamTile


@triton.jit(do_not_specialize=["tokens"])
def _gated_rows(
    x_ptr,
    w_ptr,
    square_ptr,
    y_ptr,
    tokens,
    eps,
    INPUTS: tl.constexpr,
    U: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_G: tl.constexpr,
    CHAINED: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
):
    HALF: tl.constexpr = BLOCK_O // 2
    offset_O = tl.arange(0, BLOCK_O)
    first = tl.program_id(0) * HALF
    token_T = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    row_O = tl.minimum(first + offset_O % HALF, U - 1) + (offset_O // HALF) * U
    w_OI = first_weights(w_ptr, row_O, INPUTS, BLOCK_I, BLOCK_T, CHAINED)
    y_OT = accumulate_rows(
        x_ptr, w_ptr, square_ptr, w_OI, row_O, token_T, tokens, eps, INPUTS, PARTS, BLOCK_G,
        BLOCK_O, BLOCK_I, BLOCK_T, SLICES, STAGES,
    )  # fmt: skip
    gate_UT, up_UT = split_halves(y_OT, BLOCK_O, BLOCK_T)
    act_UT = gate_UT / (1.0 + tl.exp(-gate_UT)) * up_UT
    u_U = first + tl.arange(0, HALF)
    here_UT = (u_U[:, None] < U) & (token_T[None, :] < tokens)
    at_UT = y_ptr + token_T[None, :] * U + u_U[:, None]
    tl.store(at_UT, act_UT.to(y_ptr.dtype.element_ty), mask=here_UT)


def gated_rows(
    x: ScaledRows,
    weight_OI: Tensor,
    *,
    tile: RowTile | StreamTile,
    out_TU: Tensor,
    eps: float,
    chained: bool = False,
) -> Tensor:
    """Writes silu(gate) * up of the rows, whose norm this completes, into out_TU."""
    tokens, inputs = x.x_TI.shape
    width, parts = weight_OI.shape[0] // 2, x.square_TG.shape[1]
    assert_dense(x.x_TI, x.square_TG, weight_OI, out_TU)
    tiles = triton.cdiv(width, tile.outputs // 2)
    if isinstance(tile, StreamTile):
        kernel, tiles = gated_stream, tile.programs(tiles, weight_OI.device)
    else:
        kernel = _gated_rows
    kernel[tiles, triton.cdiv(tokens, tile.block_t)](
        x.x_TI, weight_OI, x.square_TG, out_TU, tokens, eps, inputs, width, parts,
        triton.next_power_of_2(parts), CHAINED=chained, launch_pdl=chained, **tile.options(),
    )  # fmt: skip
    return out_TU


def gated_rows_reference(x_TI: Tensor, weight_OI: Tensor, *, gain_I: Tensor, eps: float) -> Tensor:
    """The same from the unscaled rows, in the dtype of x: what gated_rows is held to, in
    float64.
    """
    x_TI = x_TI * torch.rsqrt(x_TI.pow(2).mean(-1, keepdim=True) + eps) * gain_I
    gate_TU, up_TU = (x_TI @ weight_OI.T).chunk(2, dim=-1)
    return torch.nn.functional.silu(gate_TU) * up_TU
