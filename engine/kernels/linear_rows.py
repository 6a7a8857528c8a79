"""linear_rows: y = residual + norm(x) @ W.T + bias for a few rows, weights read once.

T tokens   I inputs   O outputs   G programs of the producer
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense
from engine.kernels.linear_stream import linear_stream
from engine.kernels.row_tile import RowTile, ScaledRows, accumulate_rows, first_weights
from engine.kernels.stream_tile import StreamTile


@triton.jit(do_not_specialize=["tokens"])
def _linear_rows(
    x_ptr,
    w_ptr,
    square_ptr,
    bias_ptr,
    residual_ptr,
    y_ptr,
    next_gain_ptr,
    next_x_ptr,
    next_square_ptr,
    tokens,
    eps,
    INPUTS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    NEXT_NORM: tl.constexpr,
    CHAINED: tl.constexpr,
):
    o_O = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    token_T = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    row_O = tl.minimum(o_O, OUTPUTS - 1)
    here_OT = (o_O[:, None] < OUTPUTS) & (token_T[None, :] < tokens)
    at_OT = token_T[None, :] * OUTPUTS + o_O[:, None]
    w_OI = first_weights(w_ptr, row_O, INPUTS, BLOCK_I, BLOCK_T, CHAINED)
    # What the sums are finished with is on its way while they are made.
    if BIAS:
        bias_O = tl.load(bias_ptr + row_O)
    if RESIDUAL:
        residual_OT = tl.load(residual_ptr + at_OT, mask=here_OT, other=0.0)
    if NEXT_NORM:
        gain_O = tl.load(next_gain_ptr + row_O)
    y_OT = accumulate_rows(
        x_ptr, w_ptr, square_ptr, w_OI, row_O, token_T, tokens, eps, INPUTS, PARTS, BLOCK_G,
        BLOCK_O, BLOCK_I, BLOCK_T, SLICES, STAGES,
    )  # fmt: skip
    if BIAS:
        y_OT += bias_O.to(tl.float32)[:, None]
    if RESIDUAL:
        y_OT += residual_OT.to(tl.float32)
    y_OT = y_OT.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + at_OT, y_OT, mask=here_OT)
    if NEXT_NORM:
        wide_OT = tl.where(here_OT, y_OT.to(tl.float32), 0.0)
        next_OT = wide_OT * gain_O.to(tl.float32)[:, None]
        tl.store(next_x_ptr + at_OT, next_OT.to(next_x_ptr.dtype.element_ty), mask=here_OT)
        square_T = tl.sum(wide_OT * wide_OT, axis=0)
        at_T = token_T * tl.num_programs(0) + tl.program_id(0)
        tl.store(next_square_ptr + at_T, square_T, mask=token_T < tokens)


def linear_rows(
    x: Tensor | ScaledRows,
    weight_OI: Tensor,
    *,
    tile: RowTile | StreamTile,
    out_TO: Tensor,
    eps: float = 0.0,
    bias_O: Tensor | None = None,
    residual_TO: Tensor | None = None,
    next_gain_O: Tensor | None = None,
    next_rows: ScaledRows | None = None,
    chained: bool = False,
) -> Tensor:
    """Writes residual + x @ weight.T + bias into out_TO (which may be the residual itself).

    x may be rows in the middle of an RMS norm, which this completes. With next_gain_O and next_rows
    the output also enters the next norm; next_rows.square_TG has a column per tile.outputs rows.
    """
    x_TI, square_TG = (x.x_TI, x.square_TG) if isinstance(x, ScaledRows) else (x, None)
    tokens, inputs = x_TI.shape
    outputs = weight_OI.shape[0]
    parts = 0 if square_TG is None else square_TG.shape[1]
    tiles = triton.cdiv(outputs, tile.outputs)
    assert_dense(x_TI, weight_OI, out_TO)
    assert next_rows is None or next_rows.square_TG.shape[1] == tiles, "one column per tile"
    next_x, next_square = (None, None) if next_rows is None else (
        next_rows.x_TI, next_rows.square_TG,
    )  # fmt: skip
    if isinstance(tile, StreamTile):
        kernel, tiles = linear_stream, tile.programs(tiles, weight_OI.device)
    else:
        kernel = _linear_rows
    kernel[tiles, triton.cdiv(tokens, tile.block_t)](
        x_TI, weight_OI, square_TG, bias_O, residual_TO, out_TO, next_gain_O, next_x, next_square,
        tokens, eps, inputs, outputs, parts, triton.next_power_of_2(max(parts, 1)),
        BIAS=bias_O is not None, RESIDUAL=residual_TO is not None,
        NEXT_NORM=next_rows is not None, CHAINED=chained, launch_pdl=chained, **tile.options(),
    )  # fmt: skip
    return out_TO


def linear_rows_reference(
    x_TI: Tensor,
    weight_OI: Tensor,
    *,
    gain_I: Tensor | None = None,
    eps: float = 0.0,
    bias_O: Tensor | None = None,
    residual_TO: Tensor | None = None,
) -> Tensor:
    """The same from the unscaled rows, in the dtype of x: what linear_rows is held to, in
    float64.
    """
    if gain_I is not None:
        x_TI = x_TI * torch.rsqrt(x_TI.pow(2).mean(-1, keepdim=True) + eps) * gain_I
    y_TO = x_TI @ weight_OI.T
    if bias_O is not None:
        y_TO = y_TO + bias_O
    return y_TO if residual_TO is None else residual_TO + y_TO
