"""qkv_stream: the Gluon kernel behind qkv_rows for a StreamTile.

T tokens   I inputs   Q query heads   C key/value heads
E head width; a tile is the same rows of both   halves of one head
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
def qkv_stream(
    x_ptr,
    w_ptr,
    square_ptr,
    bias_ptr,
    cos_ptr,
    sin_ptr,
    position_ptr,
    slot_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    tokens,
    eps,
    INPUTS: gl.constexpr,
    Q: gl.constexpr,
    C: gl.constexpr,
    E: gl.constexpr,
    PARTS: gl.constexpr,
    BLOCK_G: gl.constexpr,
    BIAS: gl.constexpr,
    CHAINED: gl.constexpr,
    BLOCK_O: gl.constexpr,
    SLICE: gl.constexpr,
    BLOCK_T: gl.constexpr,
    WARPS: gl.constexpr,
    SLOTS: gl.constexpr,
    BLOCKS: gl.constexpr,
):
    """The arguments of qkv_rows, BLOCK_O rows of both halves of a head after another."""
    gl.static_assert(BLOCKS == 2, "a tile is two halves")
    CHUNKS: gl.constexpr = INPUTS // (WARPS * SLICE)
    SUB: gl.constexpr = E // (2 * BLOCK_O)
    TILES: gl.constexpr = (Q + 2 * C) * SUB
    HALF: gl.constexpr = E // 2
    mine = gl.cdiv(TILES - gl.program_id(0), gl.num_programs(0))
    total = mine * CHUNKS
    # Positions and slots are the plan's, complete before the forward began.
    token_T = gl.program_id(1) * BLOCK_T + gl.arange(0, BLOCK_T, token_layout(WARPS))
    here_T = token_T < tokens
    position_T = gl.load(position_ptr + token_T, mask=here_T, other=0)
    slot_T = gl.load(slot_ptr + token_T, mask=here_T, other=0)
    low_ring, high_ring, x_ring = open_rings(
        x_ptr, w_ptr, tokens, total, CHUNKS, SUB, E, HALF, INPUTS, BLOCK_O, BLOCK_T,
        SLICE, WARPS, SLOTS, BLOCKS, CHAINED,
    )  # fmt: skip
    scale_T = inverse_rms(square_ptr, tokens, eps, INPUTS, PARTS, BLOCK_G, BLOCK_T, WARPS)
    for turn in range(mine):
        tile = gl.program_id(0) + turn * gl.num_programs(0)
        head = tile // SUB
        e_E = (tile % SUB) * BLOCK_O + gl.arange(0, BLOCK_O, row_layout(WARPS))
        here_ET = here_T[None, :] & (e_E < HALF)[:, None]
        turned_ET = here_ET & (head < Q + C)
        angle_ET = position_T[None, :] * HALF + e_E[:, None]
        cos_ET = gl.load(cos_ptr + angle_ET, mask=turned_ET, other=1.0)
        sin_ET = gl.load(sin_ptr + angle_ET, mask=turned_ET, other=0.0)
        if BIAS:
            low_bias_E = gl.load(bias_ptr + head * E + e_E)
            high_bias_E = gl.load(bias_ptr + head * E + e_E + HALF)
        low_ET, high_ET = tile_sums(
            low_ring, high_ring, x_ring, x_ptr, w_ptr, tokens, turn * CHUNKS, total, CHUNKS,
            SUB, E, HALF, INPUTS, BLOCK_O, BLOCK_T, SLICE, WARPS, SLOTS,
            BLOCKS,
        )  # fmt: skip
        low_ET *= scale_T[None, :]
        high_ET *= scale_T[None, :]
        if BIAS:
            low_ET += low_bias_E.to(gl.float32)[:, None]
            high_ET += high_bias_E.to(gl.float32)[:, None]
        low_y = (low_ET * cos_ET - high_ET * sin_ET).to(q_ptr.dtype.element_ty)
        high_y = (high_ET * cos_ET + low_ET * sin_ET).to(q_ptr.dtype.element_ty)
        if head < Q:
            q_ET = q_ptr + (token_T[None, :] * Q + head) * E + e_E[:, None]
            gl.store(q_ET, low_y, mask=here_ET)
            gl.store(q_ET + HALF, high_y, mask=here_ET)
        else:
            at_T = slot_T.to(gl.int64) * C
            if head < Q + C:
                k_ET = k_ptr + (at_T[None, :] + head - Q) * E + e_E[:, None]
                gl.store(k_ET, low_y, mask=here_ET)
                gl.store(k_ET + HALF, high_y, mask=here_ET)
            else:
                v_ET = v_ptr + (at_T[None, :] + head - Q - C) * E + e_E[:, None]
                gl.store(v_ET, low_y, mask=here_ET)
                gl.store(v_ET + HALF, high_y, mask=here_ET)
