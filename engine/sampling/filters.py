"""The law a request samples from: temperature, top-k, top-p and min-p, in this order, in float32.

B requests   N rows per request   R rows   V vocabulary   U counts units
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Float32
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.sampling.controls import BatchControls
from engine.sampling.units import WHOLE, units
from shapecheck import contract

Truncate = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

FINE = 2**40
"""Steps of probability 1 in which top-p counts masses."""


def truncate(probs_RV: Tensor, top_k_R: Tensor, top_p_R: Tensor, min_p_R: Tensor) -> Tensor:
    """f32 (R, V): each row without the tokens that top-k, top-p or min-p removes, its mass 1 again.

    Tokens are ranked by probability, equal ones by id. Masses are whole numbers, so what is kept
    does not depend on an order of sums. A row that asks for no filter is left as it is, beside
    whichever others; one without any mass keeps nothing.
    """
    sorted_RV, order_RV = probs_RV.sort(dim=-1, descending=True, stable=True)
    top_k_R1, top_p_R1, min_p_R1 = (one.unsqueeze(1) for one in (top_k_R, top_p_R, min_p_R))
    rank_V = torch.arange(probs_RV.shape[-1], device=probs_RV.device)
    keep_RV = (rank_V < top_k_R1) | (top_k_R1 == 0)
    fine_RV = torch.where(keep_RV, (sorted_RV.nan_to_num(0.0) * FINE).long(), 0)
    # top-p keeps the token that crosses the mass: what counts is the mass before it.
    before_RV = fine_RV.cumsum(dim=-1) - fine_RV
    bound_R1 = top_p_R1.double() * fine_RV.sum(dim=-1, keepdim=True).double()
    keep_RV &= (before_RV.double() < bound_R1) | (top_p_R1 >= 1.0)
    keep_RV &= sorted_RV.double() >= min_p_R1.double() * sorted_RV[:, :1].double()
    keep_RV = torch.zeros_like(keep_RV).scatter(-1, order_RV, keep_RV)
    law_RV = probs_RV.where(keep_RV, 0.0)
    mass_R1 = units(law_RV).sum(dim=-1, keepdim=True)
    law_RV = torch.where(mass_R1 > 0, law_RV.double() * WHOLE / mass_R1, 0.0).float()
    asks_R1 = (top_k_R1 > 0) | (top_p_R1 < 1.0) | (min_p_R1 > 0.0)
    return torch.where(asks_R1, law_RV, probs_RV)


@contract
def sampling_law(
    logits_BNV: Float[Tensor, "bs nodes law_vocab"],
    controls: BatchControls,
    truncate: Truncate = truncate,
) -> Float32[Tensor, "bs nodes law_vocab"]:
    """Probabilities after each request's own filters; one-hot at the best token where greedy.

    `logits_BNV` is (bs, rows, vocab) of the target or the draft. Every law keeps at least one
    token; ties are cut in favour of the lower token id.
    """
    logits_BNV = logits_BNV.float()
    temperature_B11 = controls.temperature.view(-1, 1, 1)
    is_greedy_B11 = temperature_B11 == 0.0
    best_BN1 = logits_BNV.argmax(dim=-1, keepdim=True)
    if controls.all_greedy:
        return _one_hot(best_BN1, logits_BNV)
    # Relative to the best token a low temperature runs to -inf and never to inf - inf.
    scaled_BNV = (logits_BNV - logits_BNV.gather(-1, best_BN1)) / torch.where(
        is_greedy_B11, 1.0, temperature_B11
    )
    probs_BNV = scaled_BNV.softmax(dim=-1)
    if controls.truncates:
        rows = probs_BNV.shape[1]
        filters = (controls.top_k, controls.top_p, controls.min_p)
        law_RV = truncate(probs_BNV.flatten(0, 1), *(x.repeat_interleave(rows) for x in filters))
        probs_BNV = law_RV.view_as(probs_BNV)
    return torch.where(is_greedy_B11, _one_hot(best_BN1, logits_BNV), probs_BNV)


def _one_hot(index_BN1: Tensor, like_BNV: Tensor) -> Tensor:
    return torch.zeros_like(like_BNV).scatter(-1, index_BN1, 1.0)
