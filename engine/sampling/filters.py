"""The law a request samples from: temperature, top-k, top-p and min-p, in this order, in float32.

B requests   N rows per request   V vocabulary
"""

import torch
from jaxtyping import Float, Float32
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.sampling.controls import BatchControls
from shapecheck import contract


@contract
def sampling_law(
    logits_BNV: Float[Tensor, "bs nodes law_vocab"], controls: BatchControls
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
    if controls.truncates:
        scaled_BNV = _truncate(scaled_BNV, controls)
    probs_BNV = scaled_BNV.softmax(dim=-1)
    return torch.where(is_greedy_B11, _one_hot(best_BN1, logits_BNV), probs_BNV)


def _truncate(logits_BNV: Tensor, controls: BatchControls) -> Tensor:
    """`logits_BNV` with -inf on every token that top-k, top-p or min-p removes."""
    vocab = logits_BNV.shape[-1]
    sorted_BNV, order_BNV = logits_BNV.sort(dim=-1, descending=True, stable=True)
    top_k_B11 = controls.top_k.view(-1, 1, 1)
    rank_V = torch.arange(vocab, device=logits_BNV.device)
    keep_BNV = (rank_V < top_k_B11) | (top_k_B11 == 0)
    probs_BNV = sorted_BNV.masked_fill(~keep_BNV, -torch.inf).softmax(dim=-1)
    # top-p keeps the token that crosses the mass: what counts is the mass before it. At 1 the
    # rounding of the running sum may not drop the tail.
    before_BNV = probs_BNV.cumsum(dim=-1) - probs_BNV
    top_p_B11 = controls.top_p.view(-1, 1, 1)
    keep_BNV = keep_BNV & ((before_BNV < top_p_B11) | (top_p_B11 >= 1.0))
    keep_BNV = keep_BNV & (probs_BNV >= controls.min_p.view(-1, 1, 1) * probs_BNV[..., :1])
    keep_BNV = torch.zeros_like(keep_BNV).scatter(-1, order_BNV, keep_BNV)
    return logits_BNV.masked_fill(~keep_BNV, -torch.inf)


def _one_hot(index_BN1: Tensor, like_BNV: Tensor) -> Tensor:
    return torch.zeros_like(like_BNV).scatter(-1, index_BN1, 1.0)
