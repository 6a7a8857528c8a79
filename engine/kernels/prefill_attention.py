"""prefill_attention: causal attention of ragged new rows over a paged cache, prefix included.

New rows of request b are columns [prefix, prefix + extend) of its table row; row i sees every
column up to its own. Keys and values of the new rows are in the cache already.

B requests   T new rows of all requests   Q query heads   C key/value heads   E head width   Z slots
P request rows   M table columns   N rows of a tile, tokens times the heads of one group
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense, release_successor, wait_for_producers

BLOCK_N = 64
BLOCK_Y = 64


@triton.jit
def _attend_tile(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    table_stride,
    row_ptr,
    prefix_ptr,
    start_ptr,
    y_ptr,
    scale,
    GROUP: tl.constexpr,
    C: tl.constexpr,
    E: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    CHAINED: tl.constexpr,
):
    release_successor(CHAINED)
    TOKENS: tl.constexpr = BLOCK_N // GROUP
    tile = tl.program_id(0)
    head = tl.program_id(1)
    request = tl.program_id(2)
    begin = tl.load(start_ptr + request).to(tl.int32)
    extend = tl.load(start_ptr + request + 1).to(tl.int32) - begin
    if tile * TOKENS >= extend:
        return
    prefix = tl.load(prefix_ptr + request).to(tl.int32)
    STRIDE: tl.constexpr = C * E
    row_ptr = table_ptr + tl.load(row_ptr + request).to(tl.int64) * table_stride
    k_ptr += head * E
    v_ptr += head * E
    wait_for_producers(CHAINED)

    n_N = tl.arange(0, BLOCK_N)
    e_E = tl.arange(0, BLOCK_E)
    token_N = tile * TOKENS + n_N // GROUP
    column_N = prefix + token_N
    here_NE = ((n_N < TOKENS * GROUP) & (token_N < extend))[:, None] & (e_E[None, :] < E)
    at_N = ((begin + token_N).to(tl.int64) * C + head) * GROUP + n_N % GROUP
    at_NE = at_N[:, None] * E + e_E[None, :]
    q_NE = tl.load(q_ptr + at_NE, mask=here_NE, other=0.0)
    top_N = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    sum_N = tl.zeros((BLOCK_N,), tl.float32)
    acc_NE = tl.zeros((BLOCK_N, BLOCK_E), tl.float32)
    end = prefix + tl.minimum(extend, (tile + 1) * TOKENS)
    for start in tl.range(0, end, BLOCK_Y):
        y_Y = start + tl.arange(0, BLOCK_Y)
        slot_Y = tl.load(row_ptr + y_Y, mask=y_Y < end, other=0).to(tl.int64)
        k_EY = tl.load(
            k_ptr + slot_Y[None, :] * STRIDE + e_E[:, None], mask=e_E[:, None] < E, other=0.0
        )
        v_YE = tl.load(
            v_ptr + slot_Y[:, None] * STRIDE + e_E[None, :], mask=e_E[None, :] < E, other=0.0
        )
        score_NY = tl.dot(q_NE, k_EY, input_precision="ieee") * scale
        score_NY = tl.where(y_Y[None, :] <= column_N[:, None], score_NY, float("-inf"))
        # Column 0 is in the first block and visible to every row, so top is finite from then on.
        new_top_N = tl.maximum(top_N, tl.max(score_NY, axis=1))
        p_NY = tl.exp2(score_NY - new_top_N[:, None])
        keep_N = tl.exp2(top_N - new_top_N)
        sum_N = sum_N * keep_N + tl.sum(p_NY, axis=1)
        acc_NE = acc_NE * keep_N[:, None]
        acc_NE = tl.dot(p_NY.to(v_YE.dtype), v_YE, acc_NE, input_precision="ieee")
        top_N = new_top_N
    out_NE = acc_NE / sum_N[:, None]
    tl.store(y_ptr + at_NE, out_NE.to(y_ptr.dtype.element_ty), mask=here_NE)


def prefill_attention(
    q_TQE: Tensor,
    key_ZCE: Tensor,
    value_ZCE: Tensor,
    *,
    table_PM: Tensor,
    row_B: Tensor,
    prefix_B: Tensor,
    start_B1: Tensor,
    longest: int,
    chained: bool = False,
) -> Tensor:
    """Returns each row's attention over its prefix and the new rows up to itself, (T, Q, E).

    start_B1 (B + 1,) are the bounds of each request's rows in T; `longest` bounds their number.
    """
    tokens, heads, width = q_TQE.shape
    kv_heads, requests = key_ZCE.shape[1], prefix_B.shape[0]
    group = heads // kv_heads
    block_n = max(BLOCK_N, triton.next_power_of_2(group))
    assert_dense(q_TQE, key_ZCE, value_ZCE, row_B, prefix_B, start_B1)
    out_TQE = torch.empty_like(q_TQE)
    if tokens:
        _attend_tile[triton.cdiv(longest, block_n // group), kv_heads, requests](
            q_TQE, key_ZCE, value_ZCE, table_PM, table_PM.stride(0), row_B, prefix_B, start_B1,
            out_TQE, math.log2(math.e) / math.sqrt(width), group, kv_heads, width,
            BLOCK_N=block_n, BLOCK_E=max(16, triton.next_power_of_2(width)), BLOCK_Y=BLOCK_Y,
            CHAINED=chained, launch_pdl=chained, num_warps=4, num_stages=2,
        )  # fmt: skip
    return out_TQE


def prefill_attention_reference(
    q_TQE: Tensor,
    key_ZCE: Tensor,
    value_ZCE: Tensor,
    *,
    table_PM: Tensor,
    row_B: Tensor,
    prefix_B: Tensor,
    start_B1: Tensor,
) -> Tensor:
    """The same, one request at a time, in the dtype of its inputs."""
    heads, width = q_TQE.shape[1:]
    repeat = heads // key_ZCE.shape[1]
    out_TQE = torch.empty_like(q_TQE)
    for b, (row, prefix) in enumerate(zip(row_B.tolist(), prefix_B.tolist(), strict=True)):
        rows = slice(int(start_B1[b]), int(start_B1[b + 1]))
        extend = rows.stop - rows.start
        slots_Y = table_PM[row, : prefix + extend].long()
        k_QYE = key_ZCE[slots_Y].repeat_interleave(repeat, dim=1).transpose(0, 1)
        v_QYE = value_ZCE[slots_Y].repeat_interleave(repeat, dim=1).transpose(0, 1)
        seen = torch.ones(extend, prefix + extend, dtype=torch.bool, device=q_TQE.device)
        score = q_TQE[rows].transpose(0, 1) @ k_QYE.transpose(1, 2) / math.sqrt(width)
        score = score.masked_fill(~seen.tril(prefix), float("-inf"))
        out_TQE[rows] = (torch.softmax(score, dim=-1) @ v_QYE).transpose(0, 1)
    return out_TQE
