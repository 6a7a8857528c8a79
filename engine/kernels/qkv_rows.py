"""qkv_rows: norm, query/key/value projection, rotary embedding and KV write, in one kernel.

A program owns matching rows of both halves of one head, so the rotation needs nothing from another
program. Queries go to a buffer, keys and values straight to their cache slots.

T tokens   I inputs   H query heads   J key/value heads   E head width   C slots of the pool
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.gated_rows import split_halves
from engine.kernels.row_tile import RowTile, ScaledRows, accumulate_rows


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
    I: tl.constexpr,
    H: tl.constexpr,
    J: tl.constexpr,
    E: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
    PREFETCH: tl.constexpr,
    BIAS: tl.constexpr,
    CHAINED: tl.constexpr,
):
    HALF: tl.constexpr = BLOCK_O // 2
    TILES: tl.constexpr = E // BLOCK_O
    head = tl.program_id(0) // TILES
    first = (tl.program_id(0) % TILES) * HALF
    offset_O = tl.arange(0, BLOCK_O)
    token_T = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    row_O = head * E + first + offset_O % HALF + (offset_O // HALF) * (E // 2)
    y_OT = accumulate_rows(
        x_ptr, w_ptr, square_ptr, row_O, token_T, tokens, eps, I, PARTS, BLOCK_G,
        BLOCK_O, BLOCK_I, BLOCK_T, SLICES, STAGES, PREFETCH, CHAINED,
    )  # fmt: skip
    if BIAS:
        y_OT += tl.load(bias_ptr + row_O).to(tl.float32)[:, None]
    low_ET, high_ET = split_halves(y_OT, BLOCK_O, BLOCK_T)
    here_T = token_T < tokens
    e_E = first + tl.arange(0, HALF)
    here_ET = here_T[None, :] & (e_E[:, None] < E // 2)
    if head < H + J:
        position_T = tl.load(position_ptr + token_T, mask=here_T, other=0)
        angle_ET = position_T[None, :] * (E // 2) + e_E[:, None]
        cos_ET = tl.load(cos_ptr + angle_ET, mask=here_ET, other=1.0)
        sin_ET = tl.load(sin_ptr + angle_ET, mask=here_ET, other=0.0)
        low_turned = low_ET * cos_ET - high_ET * sin_ET
        high_turned = high_ET * cos_ET + low_ET * sin_ET
        low_ET = low_turned
        high_ET = high_turned
    dtype = q_ptr.dtype.element_ty
    if head < H:
        at_ET = q_ptr + (token_T[None, :] * H + head) * E + e_E[:, None]
        tl.store(at_ET, low_ET.to(dtype), mask=here_ET)
        tl.store(at_ET + E // 2, high_ET.to(dtype), mask=here_ET)
    else:
        slot_T = tl.load(slot_ptr + token_T, mask=here_T, other=0).to(tl.int64)
        if head < H + J:
            at_ET = k_ptr + (slot_T[None, :] * J + head - H) * E + e_E[:, None]
            tl.store(at_ET, low_ET.to(dtype), mask=here_ET)
            tl.store(at_ET + E // 2, high_ET.to(dtype), mask=here_ET)
        else:
            at_ET = v_ptr + (slot_T[None, :] * J + head - H - J) * E + e_E[:, None]
            tl.store(at_ET, low_ET.to(dtype), mask=here_ET)
            tl.store(at_ET + E // 2, high_ET.to(dtype), mask=here_ET)


def qkv_rows(
    x: ScaledRows,
    weight_OI: Tensor,
    *,
    tile: RowTile,
    cos_PE: Tensor,
    sin_PE: Tensor,
    position_T: Tensor,
    slot_T: Tensor,
    out_THE: Tensor,
    key_CJE: Tensor,
    value_CJE: Tensor,
    eps: float,
    bias_O: Tensor | None = None,
    chained: bool = False,
) -> Tensor:
    """Writes the rotated queries into out_THE and keys and values into their slots of the pools."""
    tokens, inputs = x.x_TI.shape
    parts = x.square_TG.shape[1]
    _, heads, width = out_THE.shape
    kv_heads = key_CJE.shape[1]
    grid = ((heads + 2 * kv_heads) * (width // tile.block_o), triton.cdiv(tokens, tile.block_t))
    _qkv_rows[grid](
        x.x_TI, weight_OI, x.square_TG, bias_O, cos_PE, sin_PE, position_T, slot_T, out_THE,
        key_CJE, value_CJE, tokens, eps, inputs, heads, kv_heads, width,
        parts, triton.next_power_of_2(parts),
        BIAS=bias_O is not None,
        CHAINED=chained, launch_pdl=chained, **tile.options(),
    )  # fmt: skip
    return out_THE


def qkv_rows_reference(
    x_TI: Tensor,
    weight_OI: Tensor,
    *,
    cos_PE: Tensor,
    sin_PE: Tensor,
    position_T: Tensor,
    heads: int,
    kv_heads: int,
    gain_I: Tensor | None = None,
    eps: float = 0.0,
    bias_O: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns rotated queries, rotated keys and values: what qkv_rows is held to, on float64."""
    if gain_I is not None:
        x_TI = x_TI * torch.rsqrt(x_TI.pow(2).mean(-1, keepdim=True) + eps) * gain_I
    y_TO = x_TI @ weight_OI.T
    if bias_O is not None:
        y_TO = y_TO + bias_O
    y_THE = y_TO.unflatten(-1, (heads + 2 * kv_heads, -1))
    low, high = y_THE.chunk(2, dim=-1)
    cos, sin = (table[position_T].unsqueeze(1).to(y_THE.dtype) for table in (cos_PE, sin_PE))
    turned_THE = torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)
    return turned_THE[:, :heads], turned_THE[:, heads : heads + kv_heads], y_THE[:, -kv_heads:]
