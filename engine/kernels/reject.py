"""reject: rejection sampling along a drawn tree; the references are accept_tree and, for chains,
accept_chain of engine.sampling.rejection.

Two launches: the units of every law, then a program a request walks its tree. What it decides by
are single tokens and sums; only a refusal has to go over the vocabulary, once.

B requests   N verify width, root included   D width of the accept table   V target vocabulary
E draft vocabulary   C chunks of a target row   F chunks of a draft row   I chunks of a tile
U counts units
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
    whole,
)
from engine.sampling.draft_law import TreeLaw
from engine.sampling.hot_vocab import HotVocab
from engine.tree.accept import Accepted

TILE = 4
"""Chunks that the last pass over a law reads at once."""


@triton.jit
def _law_units(law_ptr, cold_ptr, token, here, WHOLE: tl.constexpr):
    """The draft's units of target ids."""
    if WHOLE:
        return as_units(tl.load(law_ptr + token, mask=here, other=0.0))
    draft_id = tl.load(cold_ptr + token, mask=here, other=-1)
    known = here & (draft_id >= 0)
    return as_units(tl.load(law_ptr + draft_id, mask=known, other=0.0))


@triton.jit
def _left_units(target_ptr, kept_ptr, token, here, reduced):
    """What is left of the target's law: its own units, or those kept by the last refusal."""
    # As wide as the tokens: a mask of a block and a scalar is none to Triton's interpreter.
    is_own = tl.zeros_like(token) == reduced
    own = as_units(tl.load(target_ptr + token, mask=here & is_own, other=0.0))
    kept = tl.load(kept_ptr + token, mask=here & (is_own == 0), other=0)
    return tl.where(is_own, own, kept)


@triton.jit
def _is_held(token, first, child, token_ptr, sibling_ptr):
    """Whether a sibling before `child` holds one of these tokens."""
    held = token == -1
    sibling = first
    while sibling != child:
        held = held | (token == tl.load(token_ptr + sibling))
        sibling = tl.load(sibling_ptr + sibling)
    return held


@triton.jit
def _reject(
    target_ptr, law_ptr, mass_ptr, cold_ptr, token_ptr, child_ptr, sibling_ptr, accept_ptr,
    final_ptr, kept_ptr, sum_ptr, predict_ptr, path_ptr, len_ptr,
    N: tl.constexpr, D: tl.constexpr, V: tl.constexpr, E: tl.constexpr, C: tl.constexpr,
    F: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_C: tl.constexpr, BLOCK_F: tl.constexpr, TILE: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    request = tl.program_id(0).to(tl.int64)
    token_ptr += request * N
    child_ptr += request * N
    sibling_ptr += request * N
    accept_ptr += request * N
    target_ptr += request * N * V
    law_ptr += request * N * E
    mass_ptr += request * N * F
    kept_ptr += request * 2 * V
    sum_ptr += request * 2 * C
    n_N, d_D = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    v_V, f_F, c_C = tl.arange(0, BLOCK_V), tl.arange(0, BLOCK_F), tl.arange(0, BLOCK_C)
    predict_N = tl.zeros((BLOCK_N,), tl.int64)
    path_D = tl.where(d_D == 0, 0, -1).to(tl.int64)
    node = tl.full((), 0, tl.int64)
    depth = tl.full((), 0, tl.int32)
    # 0: the target's own law is left; 1, 2: the law kept in that half of the scratch memory.
    reduced = tl.full((), 0, tl.int32)
    scale = whole()
    first = tl.load(child_ptr)
    child = first
    mass = tl.sum(tl.load(mass_ptr + f_F, mask=f_F < F, other=0), axis=0)
    while child >= 0:
        token = tl.load(token_ptr + child)
        own = _law_units(law_ptr + node * E, cold_ptr, token, token >= 0, WHOLE)
        own = tl.where(_is_held(token, first, child, token_ptr, sibling_ptr), 0, own)
        half_ptr = kept_ptr + tl.maximum(reduced - 1, 0) * V
        left = _left_units(target_ptr + node * V, half_ptr, token, token >= 0, reduced)
        weight = left.to(tl.float64) / scale.to(tl.float64)
        chance = tl.where(mass == 0, 1.0, own.to(tl.float64) / tl.maximum(mass, 1).to(tl.float64))
        judged = chance > 0.0
        if judged & (tl.load(accept_ptr + child) * chance < weight):
            predict_N = tl.where(n_N == node, token, predict_N)
            depth += 1
            path_D = tl.where(d_D == depth, child, path_D)
            node = child
            first = tl.load(child_ptr + node)
            child = first
            mass = tl.sum(tl.load(mass_ptr + node * F + f_F, mask=f_F < F, other=0), axis=0)
            reduced = tl.full((), 0, tl.int32)
            scale = whole()
        else:
            if judged:
                # The other half: were nothing left, the law before the refusal would stay.
                other = tl.where(reduced == 1, 2, 1)
                total = tl.full((), 0, tl.int64)
                for c in range(C):
                    at_V = c * BLOCK_V + v_V
                    here_V = at_V < V
                    left_VU = _left_units(target_ptr + node * V, half_ptr, at_V, here_V, reduced)
                    law_VU = _law_units(law_ptr + node * E, cold_ptr, at_V, here_V, WHOLE)
                    held_V = _is_held(at_V, first, child, token_ptr, sibling_ptr)
                    law_VU = tl.where(held_V, 0, law_VU)
                    law_V = law_VU.to(tl.float64) / tl.maximum(mass, 1).to(tl.float64)
                    law_V = tl.where(mass == 0, (at_V == token).to(tl.float64), law_V)
                    kept_VU = as_units(left_VU.to(tl.float64) / scale.to(tl.float64) - law_V)
                    tl.store(kept_ptr + (other - 1) * V + at_V, kept_VU, mask=here_V)
                    sum_U = tl.sum(kept_VU, axis=0)
                    tl.store(sum_ptr + (other - 1) * C + c, sum_U)
                    total += sum_U
                tl.debug_barrier()
                if total > 0:
                    reduced = other
                    scale = total
            mass -= own
            child = tl.load(sibling_ptr + child)
    target_ptr += node * V
    if reduced == 0:
        i_I = tl.arange(0, TILE)
        for c in range(0, C, TILE):
            at_IV = (c + i_I[:, None]) * BLOCK_V + v_V[None, :]
            left_IVU = as_units(tl.load(target_ptr + at_IV, mask=at_IV < V, other=0.0))
            tl.store(sum_ptr + c + i_I, tl.sum(left_IVU, axis=1), mask=c + i_I < C)
        tl.debug_barrier()
    half = tl.maximum(reduced - 1, 0)
    sum_CU = tl.load(sum_ptr + half * C + c_C, mask=c_C < C, other=0)
    threshold = threshold_of(tl.load(final_ptr + request), tl.sum(sum_CU, axis=0))
    chunk, before = chunk_of(sum_CU, threshold, C)
    at_V = chunk * BLOCK_V + v_V
    left_VU = _left_units(target_ptr, kept_ptr + half * V, at_V, at_V < V, reduced)
    final = token_of(left_VU, chunk, before, threshold, V)
    tl.store(predict_ptr + request * N + n_N, tl.where(n_N == node, final, predict_N), n_N < N)
    tl.store(path_ptr + request * D + d_D, path_D, mask=d_D < D)
    tl.store(len_ptr + request, depth + 1)


def accept_tree(
    target_probs: Tensor,
    draft_tokens: Tensor,
    law: TreeLaw,
    vocab: HotVocab,
    next_child: Tensor,
    next_sibling: Tensor,
    accept_coins: Tensor,
    final_coins: Tensor,
    *,
    accept_width: int,
) -> Accepted:
    """The reference's arguments and, with the same coins, its path and tokens.

    Target laws (B, N, V) and draft laws (B, N, E) are floats, coins f64, all else i64.
    """
    rows, width = draft_tokens.shape
    target_vocab, draft_vocab = target_probs.shape[2], law.probs.shape[2]
    device = draft_tokens.device
    block = chunk_width(target_vocab)
    chunks = triton.cdiv(target_vocab, block)
    laws = law.probs.contiguous()
    mass_BNF = chunk_sums(laws.view(rows * width, draft_vocab))
    kept_BHV = torch.empty(rows, 2, target_vocab, dtype=torch.int64, device=device)
    sum_BHC = torch.empty(rows, 2, chunks, dtype=torch.int64, device=device)
    accepted = Accepted(
        predict=torch.empty(rows, width, dtype=torch.int64, device=device),
        accept_index=torch.empty(rows, accept_width, dtype=torch.int64, device=device),
        accept_lens=torch.empty(rows, dtype=torch.int32, device=device),
    )
    if rows:
        draft_chunks = mass_BNF.shape[1]
        _reject[rows,](
            target_probs.contiguous(), laws, mass_BNF, vocab.cold, draft_tokens.contiguous(),
            next_child.contiguous(), next_sibling.contiguous(), accept_coins.contiguous(),
            final_coins.contiguous(), kept_BHV, sum_BHC, accepted.predict, accepted.accept_index,
            accepted.accept_lens, width, accept_width, target_vocab, draft_vocab, chunks,
            draft_chunks, BLOCK_V=block, BLOCK_N=triton.next_power_of_2(width),
            BLOCK_D=triton.next_power_of_2(accept_width), BLOCK_C=triton.next_power_of_2(chunks),
            BLOCK_F=triton.next_power_of_2(draft_chunks),
            TILE=min(TILE, triton.next_power_of_2(chunks)), WHOLE=vocab.is_whole, num_warps=16,
        )  # fmt: skip
    return accepted
