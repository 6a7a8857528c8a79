"""qkv_rows: norm, query/key/value projection, rotary embedding and KV write, in one kernel.

A program owns matching rows of both halves of one head, so the rotation needs nothing from another
program. Queries go to a buffer, keys and values straight to their cache slots.

T tokens   I inputs   Q query heads   C key/value heads   E head width   Z slots of the pool
M positions of the rotary tables   F = E / 2 frequencies
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense
from engine.kernels.qkv_stream import qkv_stream
from engine.kernels.row_tile import (
    RowTile,
    ScaledRows,
    accumulate_rows,
    first_weights,
    split_halves,
)
from engine.kernels.stream_tile import StreamTile


@triton.jit(do_not_specialize=["tokens"])
def _qkv_rows(
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
    INPUTS: tl.constexpr,
    Q: tl.constexpr,
    C: tl.constexpr,
    E: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BIAS: tl.constexpr,
    CHAINED: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
):
    BLOCK_F: tl.constexpr = BLOCK_O // 2
    F: tl.constexpr = E // 2
    TILES: tl.constexpr = E // BLOCK_O
    head = tl.program_id(0) // TILES
    first = (tl.program_id(0) % TILES) * BLOCK_F
    offset_O = tl.arange(0, BLOCK_O)
    token_T = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    row_O = head * E + first + offset_O % BLOCK_F + (offset_O // BLOCK_F) * F
    here_T = token_T < tokens
    # Positions are the plan's, complete before the forward began.
    position_T = tl.load(position_ptr + token_T, mask=here_T, other=0).to(tl.int32)
    w_OI = first_weights(w_ptr, row_O, INPUTS, BLOCK_I, BLOCK_T, CHAINED)
    if BIAS:
        bias_O = tl.load(bias_ptr + row_O)
    f_F = first + tl.arange(0, BLOCK_F)
    here_FT = here_T[None, :] & (f_F[:, None] < F)
    # Values keep their angle: no frequency of theirs is below the limit.
    limit = tl.where(head < Q + C, F, 0)
    turned_FT = here_T[None, :] & (f_F[:, None] < limit)
    angle_FT = position_T[None, :] * F + f_F[:, None]
    cos_FT = tl.load(cos_ptr + angle_FT, mask=turned_FT, other=1.0)
    sin_FT = tl.load(sin_ptr + angle_FT, mask=turned_FT, other=0.0)
    y_OT = accumulate_rows(
        x_ptr, w_ptr, square_ptr, w_OI, row_O, token_T, tokens, eps, INPUTS, PARTS, BLOCK_G,
        BLOCK_O, BLOCK_I, BLOCK_T, SLICES, STAGES,
    )  # fmt: skip
    if BIAS:
        y_OT += bias_O.to(tl.float32)[:, None]
    low_FT, high_FT = split_halves(y_OT, BLOCK_O, BLOCK_T)
    low_y = (low_FT * cos_FT - high_FT * sin_FT).to(q_ptr.dtype.element_ty)
    high_y = (high_FT * cos_FT + low_FT * sin_FT).to(q_ptr.dtype.element_ty)
    if head < Q:
        q_FT = q_ptr + (token_T[None, :] * Q + head) * E + f_F[:, None]
        tl.store(q_FT, low_y, mask=here_FT)
        tl.store(q_FT + F, high_y, mask=here_FT)
    else:
        at_T = tl.load(slot_ptr + token_T, mask=here_T, other=0).to(tl.int64) * C
        if head < Q + C:
            k_FT = k_ptr + (at_T[None, :] + head - Q) * E + f_F[:, None]
            tl.store(k_FT, low_y, mask=here_FT)
            tl.store(k_FT + F, high_y, mask=here_FT)
        else:
            v_FT = v_ptr + (at_T[None, :] + head - Q - C) * E + f_F[:, None]
            tl.store(v_FT, low_y, mask=here_FT)
            tl.store(v_FT + F, high_y, mask=here_FT)


def qkv_rows(
    x: ScaledRows,
    weight_OI: Tensor,
    *,
    tile: RowTile | StreamTile,
    cos_MF: Tensor,
    sin_MF: Tensor,
    position_T: Tensor,
    slot_T: Tensor,
    out_TQE: Tensor,
    key_ZCE: Tensor,
    value_ZCE: Tensor,
    eps: float,
    bias_O: Tensor | None = None,
    chained: bool = False,
) -> Tensor:
    """Writes the rotated queries into out_TQE and keys and values into their slots of the pool."""
    tokens, inputs = x.x_TI.shape
    _, heads, width = out_TQE.shape
    kv_heads, parts = key_ZCE.shape[1], x.square_TG.shape[1]
    assert width % tile.outputs == 0, "a tile lies inside one head"
    assert_dense(x.x_TI, weight_OI, position_T, slot_T, out_TQE, key_ZCE, value_ZCE)
    tiles = (heads + 2 * kv_heads) * (width // tile.outputs)
    if isinstance(tile, StreamTile):
        kernel, tiles = qkv_stream, tile.programs(tiles, weight_OI.device)
    else:
        kernel = _qkv_rows
    kernel[tiles, triton.cdiv(tokens, tile.block_t)](
        x.x_TI, weight_OI, x.square_TG, bias_O, cos_MF, sin_MF, position_T, slot_T, out_TQE,
        key_ZCE, value_ZCE, tokens, eps, inputs, heads, kv_heads, width, parts,
        triton.next_power_of_2(parts), BIAS=bias_O is not None,
        CHAINED=chained, launch_pdl=chained, **tile.options(),
    )  # fmt: skip
    return out_TQE


def qkv_rows_reference(
    x_TI: Tensor,
    weight_OI: Tensor,
    *,
    gain_I: Tensor,
    eps: float,
    cos_MF: Tensor,
    sin_MF: Tensor,
    position_T: Tensor,
    heads: int,
    kv_heads: int,
    bias_O: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns rotated queries, rotated keys and values: what qkv_rows is held to, in float64."""
    x_TI = x_TI * torch.rsqrt(x_TI.pow(2).mean(-1, keepdim=True) + eps) * gain_I
    y_TO = x_TI @ weight_OI.T
    if bias_O is not None:
        y_TO = y_TO + bias_O
    y_TJE = y_TO.unflatten(-1, (heads + 2 * kv_heads, -1))
    low, high = y_TJE.chunk(2, dim=-1)
    cos, sin = (table[position_T].unsqueeze(1).to(y_TJE.dtype) for table in (cos_MF, sin_MF))
    turned_TJE = torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)
    return turned_TJE[:, :heads], turned_TJE[:, heads : heads + kv_heads], y_TJE[:, -kv_heads:]
