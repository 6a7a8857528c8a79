"""rope: head norms, rotary embedding and KV write of projected rows, in one kernel.

T tokens   Q query heads   C key/value heads   J = Q + 2C heads of a projected row   E head width
Z slots of the pool   M positions of the rotary tables   F = E / 2 frequencies
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import release_successor, wait_for_producers


@triton.jit
def _rotate_store(
    x_ptr,
    q_gain_ptr,
    k_gain_ptr,
    cos_ptr,
    sin_ptr,
    position_ptr,
    slot_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    eps,
    Q: tl.constexpr,
    C: tl.constexpr,
    E: tl.constexpr,
    BLOCK_F: tl.constexpr,
    NORM: tl.constexpr,
    CHAINED: tl.constexpr,
):
    release_successor(CHAINED)
    F: tl.constexpr = E // 2
    head = tl.program_id(0)
    token = tl.program_id(1)
    f_F = tl.arange(0, BLOCK_F)
    here_F = f_F < F
    wait_for_producers(CHAINED)
    x_ptr += (token.to(tl.int64) * (Q + 2 * C) + head) * E
    low_F = tl.load(x_ptr + f_F, mask=here_F, other=0.0).to(tl.float32)
    high_F = tl.load(x_ptr + F + f_F, mask=here_F, other=0.0).to(tl.float32)
    if head < Q + C:
        if NORM:
            gain_ptr = q_gain_ptr
            if head >= Q:
                gain_ptr = k_gain_ptr
            scale = tl.rsqrt(tl.sum(low_F * low_F + high_F * high_F, axis=0) / E + eps)
            low_F *= scale * tl.load(gain_ptr + f_F, mask=here_F, other=0.0).to(tl.float32)
            high_F *= scale * tl.load(gain_ptr + F + f_F, mask=here_F, other=0.0).to(tl.float32)
        position = tl.load(position_ptr + token)
        cos_F = tl.load(cos_ptr + position * F + f_F, mask=here_F, other=1.0)
        sin_F = tl.load(sin_ptr + position * F + f_F, mask=here_F, other=0.0)
        turned_F = low_F * cos_F - high_F * sin_F
        high_F = high_F * cos_F + low_F * sin_F
        low_F = turned_F
    low_y = low_F.to(q_ptr.dtype.element_ty)
    high_y = high_F.to(q_ptr.dtype.element_ty)
    if head < Q:
        q_ptr += (token.to(tl.int64) * Q + head) * E
        tl.store(q_ptr + f_F, low_y, mask=here_F)
        tl.store(q_ptr + F + f_F, high_y, mask=here_F)
    else:
        slot = tl.load(slot_ptr + token).to(tl.int64)
        if head < Q + C:
            k_ptr += (slot * C + head - Q) * E
            tl.store(k_ptr + f_F, low_y, mask=here_F)
            tl.store(k_ptr + F + f_F, high_y, mask=here_F)
        else:
            v_ptr += (slot * C + head - Q - C) * E
            tl.store(v_ptr + f_F, low_y, mask=here_F)
            tl.store(v_ptr + F + f_F, high_y, mask=here_F)


def rotate_store(
    x_TJE: Tensor,
    *,
    cos_MF: Tensor,
    sin_MF: Tensor,
    position_T: Tensor,
    slot_T: Tensor,
    key_ZCE: Tensor,
    value_ZCE: Tensor,
    gains: tuple[Tensor, Tensor] | None = None,
    eps: float = 0.0,
    chained: bool = False,
) -> Tensor:
    """Returns the rotated queries (T, Q, E); rotated keys and the values are in their slots.

    `gains` are those of a query norm and a key norm over each head, before the rotation.
    """
    tokens, heads, width = x_TJE.shape
    kv_heads = key_ZCE.shape[1]
    queries = heads - 2 * kv_heads
    q_TQE = x_TJE.new_empty(tokens, queries, width)
    q_gain, k_gain = (None, None) if gains is None else gains
    if tokens:
        _rotate_store[heads, tokens](
            x_TJE, q_gain, k_gain, cos_MF, sin_MF, position_T, slot_T, q_TQE, key_ZCE, value_ZCE,
            eps, queries, kv_heads, width, BLOCK_F=triton.next_power_of_2(width // 2),
            NORM=gains is not None, CHAINED=chained, launch_pdl=chained, num_warps=1,
        )  # fmt: skip
    return q_TQE


def rotate_reference(
    x_TJE: Tensor,
    *,
    cos_MF: Tensor,
    sin_MF: Tensor,
    position_T: Tensor,
    kv_heads: int,
    gains: tuple[Tensor, Tensor] | None = None,
    eps: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns rotated queries, rotated keys and values in torch."""
    queries = x_TJE.shape[1] - 2 * kv_heads
    q_TQE, k_TCE, v_TCE = x_TJE.split((queries, kv_heads, kv_heads), dim=1)
    if gains is not None:
        width = (x_TJE.shape[-1],)
        q_TQE = torch.nn.functional.rms_norm(q_TQE, width, gains[0], eps)
        k_TCE = torch.nn.functional.rms_norm(k_TCE, width, gains[1], eps)
    low, high = torch.cat((q_TQE, k_TCE), dim=1).chunk(2, dim=-1)
    cos, sin = (table[position_T].unsqueeze(1).to(x_TJE.dtype) for table in (cos_MF, sin_MF))
    turned = torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)
    return turned[:, :queries], turned[:, queries:], v_TCE
