"""gated_stream: the Gluon kernel behind gated_rows for a StreamTile.

T tokens   I inputs   U feed-forward width; a tile is the same rows of gate and of up
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


@gluon.jit(do_not_specialize=["tokens"])
def gated_stream(
    x_ptr,
    w_ptr,
    square_ptr,
    y_ptr,
    tokens,
    eps,
    INPUTS: gl.constexpr,
    U: gl.constexpr,
    PARTS: gl.constexpr,
    BLOCK_G: gl.constexpr,
    CHAINED: gl.constexpr,
    BLOCK_O: gl.constexpr,
    SLICE: gl.constexpr,
    BLOCK_T: gl.constexpr,
    WARPS: gl.constexpr,
    SLOTS: gl.constexpr,
    BLOCKS: gl.constexpr,
):
    """The arguments of gated_rows, BLOCK_O rows of gate and of up after another."""
    gl.static_assert(BLOCKS == 2, "a tile is two halves")
    CHUNKS: gl.constexpr = INPUTS // (WARPS * SLICE)
    TILES: gl.constexpr = U // BLOCK_O
    OUTER: gl.constexpr = 0
    mine = gl.cdiv(TILES - gl.program_id(0), gl.num_programs(0))
    total = mine * CHUNKS
    gate_ring, up_ring, x_ring = open_rings(
        x_ptr, w_ptr, tokens, total, CHUNKS, TILES, OUTER, U, INPUTS, BLOCK_O, BLOCK_T,
        SLICE, WARPS, SLOTS, BLOCKS, CHAINED,
    )  # fmt: skip
    scale_T = inverse_rms(square_ptr, tokens, eps, INPUTS, PARTS, BLOCK_G, BLOCK_T, WARPS)
    for turn in range(mine):
        gate_UT, up_UT = tile_sums(
            gate_ring, up_ring, x_ring, x_ptr, w_ptr, tokens, turn * CHUNKS, total, CHUNKS,
            TILES, OUTER, U, INPUTS, BLOCK_O, BLOCK_T, SLICE, WARPS, SLOTS,
            BLOCKS,
        )  # fmt: skip
        gate_UT *= scale_T[None, :]
        up_UT *= scale_T[None, :]
        act_UT = gate_UT / (1.0 + gl.exp(-gate_UT)) * up_UT
        tile = gl.program_id(0) + turn * gl.num_programs(0)
        row_U = tile * BLOCK_O + gl.arange(0, BLOCK_O, row_layout(WARPS))
        token_T = gl.program_id(1) * BLOCK_T + gl.arange(0, BLOCK_T, token_layout(WARPS))
        gl.store(
            y_ptr + token_T[None, :] * U + row_U[:, None],
            act_UT.to(y_ptr.dtype.element_ty),
            mask=(token_T < tokens)[None, :] & (row_U < U)[:, None],
        )
