"""units: laws as whole numbers inside kernels; the reference is engine.sampling.units.

Whole numbers add up alike in every order, so a kernel may split a sum as it likes and still draws
the token that torch draws. (Of a running sum of floats that cannot be said: there the split would
have to be copied.)

R rows   V vocabulary   C chunks of a row   U counts units
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDEST = 4096
"""Tokens of a chunk of a large vocabulary."""


@triton.jit
def whole():
    """Units of probability 1."""
    return tl.full((), 1 << 61, tl.int64)


@triton.jit
def as_units(law):
    """Probabilities of any float type in i64 units, rounded down; NaN counts as 0."""
    wide = law.to(tl.float64)
    return (tl.minimum(tl.where(wide > 0, wide, 0.0), 1.0) * whole().to(tl.float64)).to(tl.int64)


@triton.jit
def threshold_of(coin, total):
    """What the cumulated units have to exceed: coin times total, below total, at least 0."""
    bound = (coin * total.to(tl.float64)).to(tl.int64)
    return tl.maximum(tl.minimum(bound, total - 1), 0)


@triton.jit
def chunk_of(sum_CU, threshold, chunks):
    """The chunk in which the cumulated units first exceed the threshold, and the units before it.

    `sum_CU` are the units of each chunk, 0 behind the last; without any units the answer is
    `chunks`.
    """
    c_C = tl.arange(0, sum_CU.shape[0])
    passed_C = (tl.cumsum(sum_CU, axis=0) <= threshold) & (c_C < chunks)
    chunk = tl.sum(passed_C.to(tl.int32), axis=0)
    return chunk, tl.sum(tl.where(passed_C, sum_CU, 0), axis=0)


@triton.jit
def token_of(law_VU, chunk, before, threshold, V: tl.constexpr):
    """The token of the chunk at which the cumulated units first exceed the threshold; at most the
    last token of the vocabulary.
    """
    passed_V = tl.cumsum(law_VU, axis=0) + before <= threshold
    token = chunk * law_VU.shape[0] + tl.sum(passed_V.to(tl.int32), axis=0)
    return tl.minimum(token, V - 1).to(tl.int64)


@triton.jit
def _chunk_sums(law_ptr, sum_ptr, V: tl.constexpr, BLOCK_V: tl.constexpr):
    row = tl.program_id(1)
    v_V = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    law_V = tl.load(law_ptr + row.to(tl.int64) * V + v_V, mask=v_V < V, other=0.0)
    total = tl.sum(as_units(law_V), axis=0)
    tl.store(sum_ptr + row * tl.num_programs(0) + tl.program_id(0), total)


def chunk_width(vocab: int) -> int:
    """Tokens of a chunk: chunk_sums and whoever reads its sums cut rows alike."""
    return min(WIDEST, triton.next_power_of_2(vocab))


def chunk_sums(law_RV: Tensor) -> Tensor:
    """(R, C) i64: the units of every chunk of every row."""
    rows, vocab = law_RV.shape
    width = chunk_width(vocab)
    chunks = triton.cdiv(vocab, width)
    sum_RC = torch.empty(rows, chunks, dtype=torch.int64, device=law_RV.device)
    if rows:
        _chunk_sums[chunks, rows](law_RV, sum_RC, vocab, BLOCK_V=width, num_warps=8)
    return sum_RC
