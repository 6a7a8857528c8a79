"""draw: K tokens of every row without replacement; the references are engine.sampling.draw and
draw_children of engine.sampling.draft_law.

Two launches: the units of every chunk, then a program a row finds the chunk of each token and
reads that one alone.

R rows   V vocabulary   K draws of a row   C chunks of a row   U counts units
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.units import (
    as_units,
    chunk_of,
    chunk_sums,
    chunk_width,
    threshold_of,
    token_of,
)


@triton.jit
def _best_unseen(logit_ptr, token_K, count, V: tl.constexpr, BLOCK_V: tl.constexpr):
    """The lowest id of the largest logit outside token_K; as in torch NaN is the largest."""
    top = tl.full((), float("-inf"), tl.float32)
    best = tl.full((), 0, tl.int32)
    k_K = tl.arange(0, token_K.shape[0])
    for start in range(0, V, BLOCK_V):
        v_V = start + tl.arange(0, BLOCK_V)
        logit_V = tl.load(logit_ptr + v_V, mask=v_V < V, other=float("-inf")).to(tl.float32)
        logit_V = tl.where(logit_V != logit_V, float("inf"), logit_V)
        for k in range(count):
            logit_V = tl.where(
                v_V == tl.sum(tl.where(k_K == k, token_K, 0)), float("-inf"), logit_V
            )
        here = tl.max(logit_V, axis=0)
        if here > top:
            best = tl.min(tl.where(logit_V == here, v_V, V), axis=0)
            top = here
    return best.to(tl.int64)


@triton.jit
def _draw(
    law_ptr, sum_ptr, logit_ptr, coin_ptr, token_ptr, chunks, V: tl.constexpr, K: tl.constexpr,
    BLOCK_V: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    law_ptr += row * V
    c_C = tl.arange(0, BLOCK_C)
    v_V = tl.arange(0, BLOCK_V)
    k_K = tl.arange(0, BLOCK_K)
    sum_CU = tl.load(sum_ptr + row * chunks + c_C, mask=c_C < chunks, other=0)
    token_K = tl.full((BLOCK_K,), -1, tl.int64)
    for k in range(K):
        total = tl.sum(sum_CU, axis=0)
        threshold = threshold_of(tl.load(coin_ptr + row * K + k), total)
        chunk, before = chunk_of(sum_CU, threshold, chunks)
        at_V = chunk * BLOCK_V + v_V
        law_VU = as_units(tl.load(law_ptr + at_V, mask=at_V < V, other=0.0))
        for earlier in range(k):
            gone = tl.sum(tl.where(k_K == earlier, token_K, 0))
            law_VU = tl.where(at_V == gone, 0, law_VU)
        token = token_of(law_VU, chunk, before, threshold, V)
        if (k > 0) & (total == 0):
            token = _best_unseen(logit_ptr + row * V, token_K, k, V, BLOCK_V)
        token_K = tl.where(k_K == k, token, token_K)
        own = tl.sum(tl.where(at_V == token, law_VU, 0), axis=0)
        sum_CU = tl.where(c_C == token // BLOCK_V, sum_CU - own, sum_CU)
    tl.store(token_ptr + row * K + k_K, token_K, mask=k_K < K)


def draw(law_RV: Tensor, coins_R: Tensor) -> Tensor:
    """(R,) i64: one token a row, from a law of floats and f64 coins."""
    # A first draw never falls back on logits.
    return _drawn(law_RV, law_RV, coins_R.unsqueeze(1)).squeeze(1)


def draw_children(law_RV: Tensor, logits_RV: Tensor, coins_RK: Tensor) -> Tensor:
    """(R, K) i64: tokens drawn one after the other, the best remaining logit once none is left."""
    return _drawn(law_RV, logits_RV, coins_RK)


def _drawn(law_RV: Tensor, logits_RV: Tensor, coins_RK: Tensor) -> Tensor:
    rows, draws = coins_RK.shape
    vocab = law_RV.shape[1]
    law_RV = law_RV.contiguous()
    token_RK = torch.empty(rows, draws, dtype=torch.int64, device=law_RV.device)
    sum_RC = chunk_sums(law_RV)
    if rows:
        chunks = sum_RC.shape[1]
        _draw[rows,](
            law_RV, sum_RC, logits_RV.contiguous(), coins_RK.contiguous(), token_RK, chunks, vocab,
            draws, BLOCK_V=chunk_width(vocab), BLOCK_C=triton.next_power_of_2(chunks),
            BLOCK_K=triton.next_power_of_2(draws), num_warps=8,
        )  # fmt: skip
    return token_RK
