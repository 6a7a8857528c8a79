"""linear_stream: the Gluon kernel behind linear_rows for a StreamTile.

T tokens   I inputs   O outputs   G tiles of the matrix
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from engine.kernels.stream_tile import (
    inverse_rms,
    open_rings,
    row_layout,
    tile_sums,
    token_layout,
)


@gluon.jit
def _fetch(
    at_OT, here_OT, row_O, bias_ptr, residual_ptr, next_gain_ptr,
    BIAS: gl.constexpr, RESIDUAL: gl.constexpr, NEXT_NORM: gl.constexpr,
):  # fmt: skip
    """Returns bias, residual and gain of one block, on their way and as they are stored; what is
    not asked for is zero.
    """
    bias_O = gl.zeros_like(row_O)
    if BIAS:
        bias_O = gl.load(bias_ptr + row_O)
    residual_OT = gl.zeros_like(at_OT)
    if RESIDUAL:
        residual_OT = gl.load(residual_ptr + at_OT, mask=here_OT, other=0.0)
    gain_O = gl.zeros_like(row_O)
    if NEXT_NORM:
        gain_O = gl.load(next_gain_ptr + row_O)
    return bias_O, residual_OT, gain_O


@gluon.jit
def _finish(
    y_OT, at_OT, here_OT, bias_O, residual_OT, gain_O, y_ptr, next_x_ptr,
    BIAS: gl.constexpr, RESIDUAL: gl.constexpr, NEXT_NORM: gl.constexpr,
):  # fmt: skip
    """Stores one block of rows, also into the next norm; returns its squares summed over O."""
    if BIAS:
        y_OT += bias_O.to(gl.float32)[:, None]
    if RESIDUAL:
        y_OT += residual_OT.to(gl.float32)
    rounded_OT = y_OT.to(y_ptr.dtype.element_ty)
    gl.store(y_ptr + at_OT, rounded_OT, mask=here_OT)
    wide_OT = gl.where(here_OT, rounded_OT.to(gl.float32), 0.0)
    if NEXT_NORM:
        next_OT = wide_OT * gain_O.to(gl.float32)[:, None]
        gl.store(next_x_ptr + at_OT, next_OT.to(next_x_ptr.dtype.element_ty), mask=here_OT)
    return gl.sum(wide_OT * wide_OT, axis=0)


@gluon.jit(do_not_specialize=["tokens"])
def linear_stream(
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
    INPUTS: gl.constexpr,
    OUTPUTS: gl.constexpr,
    PARTS: gl.constexpr,
    BLOCK_G: gl.constexpr,
    BIAS: gl.constexpr,
    RESIDUAL: gl.constexpr,
    NEXT_NORM: gl.constexpr,
    CHAINED: gl.constexpr,
    BLOCK_O: gl.constexpr,
    SLICE: gl.constexpr,
    BLOCK_T: gl.constexpr,
    WARPS: gl.constexpr,
    SLOTS: gl.constexpr,
    BLOCKS: gl.constexpr,
):
    """The arguments of linear_rows, one tile of BLOCKS * BLOCK_O adjacent output rows after
    another."""
    CHUNKS: gl.constexpr = INPUTS // (WARPS * SLICE)
    TILES: gl.constexpr = OUTPUTS // (BLOCKS * BLOCK_O)
    SUB: gl.constexpr = 1
    OUTER: gl.constexpr = BLOCKS * BLOCK_O
    mine = gl.cdiv(TILES - gl.program_id(0), gl.num_programs(0))
    total = mine * CHUNKS
    low_ring, high_ring, x_ring = open_rings(
        x_ptr, w_ptr, tokens, total, CHUNKS, SUB, OUTER, BLOCK_O, INPUTS, BLOCK_O, BLOCK_T,
        SLICE, WARPS, SLOTS, BLOCKS, CHAINED,
    )  # fmt: skip
    if PARTS > 0:
        scale_T = inverse_rms(square_ptr, tokens, eps, INPUTS, PARTS, BLOCK_G, BLOCK_T, WARPS)
    for turn in range(mine):
        tile = gl.program_id(0) + turn * gl.num_programs(0)
        row_O = tile * OUTER + gl.arange(0, BLOCK_O, row_layout(WARPS))
        token_T = gl.program_id(1) * BLOCK_T + gl.arange(0, BLOCK_T, token_layout(WARPS))
        here_OT = (token_T < tokens)[None, :] & (row_O < OUTPUTS)[:, None]
        at_OT = token_T[None, :] * OUTPUTS + row_O[:, None]
        bias_O, residual_OT, gain_O = _fetch(
            at_OT, here_OT, row_O, bias_ptr, residual_ptr, next_gain_ptr, BIAS, RESIDUAL,
            NEXT_NORM,
        )  # fmt: skip
        if BLOCKS == 2:
            high_bias_O, high_residual_OT, high_gain_O = _fetch(
                at_OT + BLOCK_O, here_OT, row_O + BLOCK_O, bias_ptr, residual_ptr, next_gain_ptr,
                BIAS, RESIDUAL, NEXT_NORM,
            )  # fmt: skip
        low_OT, high_OT = tile_sums(
            low_ring, high_ring, x_ring, x_ptr, w_ptr, tokens, turn * CHUNKS, total, CHUNKS,
            SUB, OUTER, BLOCK_O, INPUTS, BLOCK_O, BLOCK_T, SLICE, WARPS, SLOTS, BLOCKS,
        )  # fmt: skip
        if PARTS > 0:
            low_OT *= scale_T[None, :]
            high_OT *= scale_T[None, :]
        square_T = _finish(
            low_OT, at_OT, here_OT, bias_O, residual_OT, gain_O, y_ptr, next_x_ptr, BIAS,
            RESIDUAL, NEXT_NORM,
        )  # fmt: skip
        if BLOCKS == 2:
            square_T += _finish(
                high_OT, at_OT + BLOCK_O, here_OT, high_bias_O, high_residual_OT, high_gain_O,
                y_ptr, next_x_ptr, BIAS, RESIDUAL, NEXT_NORM,
            )  # fmt: skip
        if NEXT_NORM:
            gl.store(next_square_ptr + token_T * TILES + tile, square_T, mask=token_T < tokens)
