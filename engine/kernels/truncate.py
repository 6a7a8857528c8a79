"""truncate: top-k, top-p and min-p without a sort; the reference is engine.sampling.truncate.

Ranked by probability, what a filter keeps is a prefix, and a prefix ends at one probability: all
larger ones are kept, and of the equal ones the first few. As bits a probability is a whole number
that has its order. Three bits a pass are found, from the top: eight pivots cut the interval that is
left, and tokens and mass from each pivot on say behind which of them the prefix ends. Once for
top-k, whose mass top-p refers to, and once for top-p.

R rows   V vocabulary   C chunks of a row   J pivots
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense, overlaps, release_successor, wait_for_producers
from engine.kernels.units import as_units, chunk_width, whole
from engine.sampling.filters import FINE

PASSES = 10
"""Three bits each: a probability has 30, its sign and the exponents beyond 1 being unused."""

CHAINED_ROWS = 16
"""Rows up to which passes overlap; more of them fill the card, and rows that ask for nothing would
wait before they leave.
"""

_LAST = tl.constexpr(PASSES - 1)
_J = tl.constexpr(8)
_FINE = tl.constexpr(float(FINE))
_MASS = tl.constexpr(4 * FINE)
"""Tokens and mass are one whole number: tokens times this plus mass."""

_ALL = tl.constexpr(2**40)
"""More tokens than any row has."""


@triton.jit
def _key(p):
    """The bits of a probability; NaN counts as 0."""
    return tl.where(p > 0, p, 0.0).to(tl.int32, bitcast=True)


@triton.jit
def _mass(p):
    """Its mass in fine steps."""
    return (tl.where(p > 0, p, 0.0) * _FINE).to(tl.int64)


@triton.jit
def _narrowed(
    state_ptr, tally_ptr, row, rows, chunks, number, top_k, bound, BLOCK_C: tl.constexpr
):  # fmt: skip
    """The interval that pass `number` leaves: its first key, what is ranked before it, and what is
    in it, both as tokens and mass.

    A prefix goes on while it has less than top_k tokens and less mass than bound.
    """
    c_C = tl.arange(0, BLOCK_C)
    j_J = tl.arange(0, _J)
    at_CJ = ((number % 2 * rows + row) * chunks + c_C[:, None]) * _J + j_J[None, :]
    from_J = tl.sum(tl.load(tally_ptr + at_CJ, mask=(c_C < chunks)[:, None], other=0), axis=0)
    state_ptr += (number * rows + row) * 2
    first, above = tl.load(state_ptr), tl.load(state_ptr + 1)
    # What lies from a pivot on is what stands before the interval that ends there.
    before_J = above + from_J
    goes_on_J = (before_J // _MASS < top_k) & ((before_J % _MASS).to(tl.float64) < bound)
    here = _J - 1 - tl.sum((goes_on_J & (j_J > 0)).to(tl.int32), axis=0)
    behind = tl.sum(tl.where(j_J == here + 1, from_J, 0), axis=0)
    inside = tl.sum(tl.where(j_J == here, from_J, 0), axis=0) - behind
    return first + (here.to(tl.int64) << (3 * (_LAST - number))), above + behind, inside


@triton.jit
def _fine_of(key):
    """The mass of a probability of which the bits are given."""
    return _mass(key.to(tl.int32).to(tl.float32, bitcast=True))


@triton.jit
def _bound(top_k, top_p, state_ptr, tally_ptr, row, rows, chunks, BLOCK_C: tl.constexpr):
    """The mass that ends a top-p prefix: top_p of what top-k kept."""
    if top_k == 0:
        # The first tally is of the whole row, and no later one of such a row overwrites it.
        c_C = tl.arange(0, BLOCK_C)
        at_C = (row * chunks + c_C) * _J
        mass = tl.sum(tl.load(tally_ptr + at_C, mask=c_C < chunks, other=0), axis=0) % _MASS
    else:
        key, before, ties = _narrowed(
            state_ptr, tally_ptr, row, rows, chunks, _LAST, top_k, float("inf"), BLOCK_C
        )
        taken = tl.minimum(ties // _MASS, top_k - before // _MASS)
        mass = before % _MASS + taken * _fine_of(key)
    return top_p.to(tl.float64) * mass.to(tl.float64)


@triton.jit(do_not_specialize=["number"])
def _tally(
    p_ptr, top_k_ptr, top_p_ptr, k_state_ptr, k_tally_ptr, state_ptr, tally_ptr, number,
    V: tl.constexpr, TOP_P: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_C: tl.constexpr,
    CHAINED: tl.constexpr,
):  # fmt: skip
    """Pass `number`: what one chunk has from each pivot on, inside the interval that is left."""
    release_successor(CHAINED)
    chunk, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    chunks, rows = tl.num_programs(0), tl.num_programs(1)
    top_k = tl.load(top_k_ptr + row)
    top_p = tl.load(top_p_ptr + row)
    v_V = chunk * BLOCK_V + tl.arange(0, BLOCK_V)
    p_V = tl.load(p_ptr + row * V + v_V, mask=v_V < V, other=-1.0)
    # Also those who have nothing to do: the next pass waits for this one, not for the one before.
    wait_for_producers(CHAINED)
    if TOP_P:
        if top_p >= 1.0:
            return
    elif (number > 0) & (top_k == 0):
        return
    first = tl.zeros((), tl.int64)
    if number > 0:
        if TOP_P:
            tokens = _ALL
            bound = _bound(top_k, top_p, k_state_ptr, k_tally_ptr, row, rows, chunks, BLOCK_C)
        else:
            tokens = top_k
            bound = tl.full((), float("inf"), tl.float64)
        first, before, _ = _narrowed(
            state_ptr, tally_ptr, row, rows, chunks, number - 1, tokens, bound, BLOCK_C
        )
        if chunk == 0:
            tl.store(state_ptr + (number * rows + row) * 2, first)
            tl.store(state_ptr + (number * rows + row) * 2 + 1, before)
    step = tl.full((), 1, tl.int32) << (3 * (_LAST - number))
    ahead_V = _key(p_V) - first.to(tl.int32)
    own_V = tl.where((v_V < V) & (ahead_V < _J * step), _mass(p_V) + _MASS, 0)
    tally_ptr += ((number % 2 * rows + row) * chunks + chunk) * _J
    for j in tl.static_range(_J):
        tl.store(tally_ptr + j, tl.sum(tl.where(ahead_V >= j * step, own_V, 0), axis=0))


@triton.jit
def _rank(is_tie_V, tally_ptr, row, rows, chunks, chunk, key, BLOCK_C: tl.constexpr):
    """The rank of every token among those of this key, by id."""
    c_C = tl.arange(0, BLOCK_C)
    j_J = tl.arange(0, _J)
    at_CJ = ((_LAST % 2 * rows + row) * chunks + c_C[:, None]) * _J + j_J[None, :]
    from_J = tl.sum(tl.load(tally_ptr + at_CJ, mask=(c_C < chunk)[:, None], other=0), axis=0)
    own = key % _J  # the last pass has a pivot a key
    earlier = tl.sum(tl.where(j_J == own, from_J, 0) - tl.where(j_J == own + 1, from_J, 0), axis=0)
    return earlier // _MASS + tl.cumsum(is_tie_V.to(tl.int64), axis=0) - 1


@triton.jit
def _cut(
    p_ptr, best_ptr, top_k_ptr, top_p_ptr, min_p_ptr, k_state_ptr, k_tally_ptr, state_ptr,
    tally_ptr, law_ptr, sum_ptr, V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_C: tl.constexpr,
    CHAINED: tl.constexpr,
):  # fmt: skip
    """What all filters keep of one chunk, and its units."""
    release_successor(CHAINED)
    chunk, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    chunks, rows = tl.num_programs(0), tl.num_programs(1)
    v_V = chunk * BLOCK_V + tl.arange(0, BLOCK_V)
    p_V = tl.load(p_ptr + row * V + v_V, mask=v_V < V, other=0.0)
    key_V = _key(p_V)
    best = tl.load(best_ptr + row).to(tl.float64)
    top_k, top_p = tl.load(top_k_ptr + row), tl.load(top_p_ptr + row)
    min_p = tl.load(min_p_ptr + row).to(tl.float64)
    asks = (top_k > 0) | (top_p < 1.0) | (min_p > 0.0)
    keep_V = (p_V.to(tl.float64) >= min_p * best) | (not asks)
    wait_for_producers(CHAINED)
    if top_k > 0:
        key, before, _ = _narrowed(
            k_state_ptr, k_tally_ptr, row, rows, chunks, _LAST, top_k, float("inf"), BLOCK_C
        )
        is_tie_V = (key_V == key) & (v_V < V)
        rank_V = _rank(is_tie_V, k_tally_ptr, row, rows, chunks, chunk, key, BLOCK_C)
        keep_V &= (key_V > key) | (is_tie_V & (before // _MASS + rank_V < top_k))
    if top_p < 1.0:
        bound = _bound(top_k, top_p, k_state_ptr, k_tally_ptr, row, rows, chunks, BLOCK_C)
        key, before, _ = _narrowed(
            state_ptr, tally_ptr, row, rows, chunks, _LAST, _ALL, bound, BLOCK_C
        )
        is_tie_V = (key_V == key) & (v_V < V)
        rank_V = _rank(is_tie_V, tally_ptr, row, rows, chunks, chunk, key, BLOCK_C)
        fits_V = (before % _MASS + rank_V * _fine_of(key)).to(tl.float64) < bound
        keep_V &= (key_V > key) | (is_tie_V & fits_V)
    law_V = tl.where(keep_V, p_V, 0.0)
    tl.store(law_ptr + row * V + v_V, law_V, mask=v_V < V)
    kept = tl.sum(as_units(law_V), axis=0)
    tl.store(sum_ptr + row * chunks + chunk, tl.where(asks, kept, -1))


@triton.jit
def _normalise(
    law_ptr, sum_ptr, V: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_C: tl.constexpr,
    CHAINED: tl.constexpr,
):  # fmt: skip
    """Every chunk over the mass of its row; a negative one is of a row that asked for nothing."""
    wait_for_producers(CHAINED)
    chunk, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    chunks = tl.num_programs(0)
    c_C = tl.arange(0, BLOCK_C)
    mass = tl.sum(tl.load(sum_ptr + row * chunks + c_C, mask=c_C < chunks, other=0), axis=0)
    if mass < 0:
        return
    v_V = chunk * BLOCK_V + tl.arange(0, BLOCK_V)
    law_V = tl.load(law_ptr + row * V + v_V, mask=v_V < V, other=0.0).to(tl.float64)
    law_V = law_V * whole().to(tl.float64) / tl.maximum(mass, 1).to(tl.float64)
    tl.store(law_ptr + row * V + v_V, tl.where(mass > 0, law_V, 0.0).to(tl.float32), mask=v_V < V)


def truncate(probs_RV: Tensor, top_k_R: Tensor, top_p_R: Tensor, min_p_R: Tensor) -> Tensor:
    """f32 (R, V): each row without the tokens that top-k, top-p or min-p removes, its mass 1 again;
    probabilities are f32 and at most 1.
    """
    rows, vocab = probs_RV.shape
    probs_RV = probs_RV.contiguous()
    assert_dense(top_k_R, top_p_R, min_p_R)
    law_RV = torch.empty_like(probs_RV)
    if not rows:
        return law_RV
    width = chunk_width(vocab)
    chunks = triton.cdiv(vocab, width)

    def numbers(*sizes: int) -> Tensor:
        return torch.zeros(sizes, dtype=torch.int64, device=probs_RV.device)

    # Of both searches: where each pass begins, and the tallies of a pass and of the one before.
    top_k, top_p = ((numbers(PASSES, rows, 2), numbers(2, rows, chunks, 8)) for _ in range(2))
    sum_RC = numbers(rows, chunks)
    best_R = probs_RV.amax(dim=1)
    cut = {"V": vocab, "BLOCK_V": width, "BLOCK_C": triton.next_power_of_2(chunks), "num_warps": 8}
    overlapping = overlaps() and rows <= CHAINED_ROWS
    chained = False  # the first pass starts when all that it reads is there
    for search in (top_k, top_p):
        for number in range(PASSES):
            _tally[chunks, rows](
                probs_RV, top_k_R, top_p_R, *top_k, *search, number, TOP_P=search is top_p,
                CHAINED=overlapping, launch_pdl=chained, **cut,
            )  # fmt: skip
            chained = overlapping
    _cut[chunks, rows](
        probs_RV, best_R, top_k_R, top_p_R, min_p_R, *top_k, *top_p, law_RV, sum_RC,
        CHAINED=chained, launch_pdl=chained, **cut,
    )  # fmt: skip
    _normalise[chunks, rows](law_RV, sum_RC, CHAINED=chained, launch_pdl=chained, **cut)
    return law_RV
