"""rope: head norms, rotary embedding and KV write of projected rows, in one kernel.

T tokens   Q query heads   C key/value heads   J = Q + 2C heads of a projected row   E head width
Z slots of the pool   M positions of the rotary tables   F = E / 2 frequencies
S parts of a product (engine.kernels.wide_rows)
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense, release_successor, wait_for_producers


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
    PARTS: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_F: tl.constexpr,
    NORM: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """BLOCK_J heads of one token."""
    release_successor(CHAINED)
    F: tl.constexpr = E // 2
    J: tl.constexpr = Q + 2 * C
    token = tl.program_id(1)
    j_J = tl.program_id(0) * BLOCK_J + tl.arange(0, BLOCK_J)
    f_F = tl.arange(0, BLOCK_F)
    here_JF = (j_J[:, None] < J) & (f_F[None, :] < F)
    column_JF = tl.broadcast_to(f_F[None, :], (BLOCK_J, BLOCK_F))
    # Values are neither normed nor turned.
    turned_JF = here_JF & (j_J[:, None] < Q + C)
    part = tl.num_programs(1).to(tl.int64) * J * E
    x_JF = x_ptr + (token.to(tl.int64) * J + j_J)[:, None] * E + f_F[None, :]
    # The plan's and the tables', complete before the forward began.
    angle_JF = tl.load(position_ptr + token) * F + column_JF
    slot = tl.load(slot_ptr + token).to(tl.int64)
    cos_JF = tl.load(cos_ptr + angle_JF, mask=turned_JF, other=1.0)
    sin_JF = tl.load(sin_ptr + angle_JF, mask=turned_JF, other=0.0)
    wait_for_producers(CHAINED)
    low_JF = tl.load(x_JF, mask=here_JF, other=0.0).to(tl.float32)
    high_JF = tl.load(x_JF + F, mask=here_JF, other=0.0).to(tl.float32)
    for other in tl.static_range(1, PARTS):
        low_JF += tl.load(x_JF + other * part, mask=here_JF, other=0.0).to(tl.float32)
        high_JF += tl.load(x_JF + other * part + F, mask=here_JF, other=0.0).to(tl.float32)
    if NORM:
        scale_J = tl.rsqrt(tl.sum(low_JF * low_JF + high_JF * high_JF, axis=1) / E + eps)
        scale_JF = tl.where(turned_JF, scale_J[:, None], 1.0)
        query_JF = turned_JF & (j_J[:, None] < Q)
        key_JF = turned_JF & (j_J[:, None] >= Q)
        for_q_JF, for_k_JF = q_gain_ptr + column_JF, k_gain_ptr + column_JF
        low_gain_JF = tl.load(for_q_JF, mask=query_JF, other=1.0).to(tl.float32)
        low_gain_JF *= tl.load(for_k_JF, mask=key_JF, other=1.0).to(tl.float32)
        high_gain_JF = tl.load(for_q_JF + F, mask=query_JF, other=1.0).to(tl.float32)
        high_gain_JF *= tl.load(for_k_JF + F, mask=key_JF, other=1.0).to(tl.float32)
        low_JF *= scale_JF * low_gain_JF
        high_JF *= scale_JF * high_gain_JF
    low_y = (low_JF * cos_JF - high_JF * sin_JF).to(q_ptr.dtype.element_ty)
    high_y = (high_JF * cos_JF + low_JF * sin_JF).to(q_ptr.dtype.element_ty)
    q_JF = q_ptr + (token.to(tl.int64) * Q + j_J)[:, None] * E + f_F[None, :]
    here_q_JF = here_JF & (j_J[:, None] < Q)
    tl.store(q_JF, low_y, mask=here_q_JF)
    tl.store(q_JF + F, high_y, mask=here_q_JF)
    k_JF = k_ptr + (slot * C + j_J - Q)[:, None] * E + f_F[None, :]
    here_k_JF = turned_JF & (j_J[:, None] >= Q)
    tl.store(k_JF, low_y, mask=here_k_JF)
    tl.store(k_JF + F, high_y, mask=here_k_JF)
    v_JF = v_ptr + (slot * C + j_J - Q - C)[:, None] * E + f_F[None, :]
    here_v_JF = here_JF & (j_J[:, None] >= Q + C)
    tl.store(v_JF, low_y, mask=here_v_JF)
    tl.store(v_JF + F, high_y, mask=here_v_JF)


def rotate_store(
    x: Tensor,
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

    x is (T, J, E), or (S, T, J, E): parts that are added up first. `gains` are those of a query
    norm and a key norm over each head, before the rotation.
    """
    tokens, heads, width = x.shape[-3:]
    parts = x.shape[0] if x.dim() == 4 else 1
    kv_heads = key_ZCE.shape[1]
    queries = heads - 2 * kv_heads
    q_TQE = key_ZCE.new_empty(tokens, queries, width)
    q_gain, k_gain = (None, None) if gains is None else gains
    assert_dense(x, position_T, slot_T, key_ZCE, value_ZCE)
    if tokens:
        # Few tokens are spread over more programs than many.
        block_j = 4 if tokens < 64 else 8
        _rotate_store[triton.cdiv(heads, block_j), tokens](
            x, q_gain, k_gain, cos_MF, sin_MF, position_T, slot_T, q_TQE, key_ZCE, value_ZCE,
            eps, queries, kv_heads, width, parts, BLOCK_J=block_j,
            BLOCK_F=triton.next_power_of_2(width // 2), NORM=gains is not None, CHAINED=chained,
            launch_pdl=chained, num_warps=block_j // 2,
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
