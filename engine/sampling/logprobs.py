"""Log-probabilities of emitted tokens under the model's own law, before any filter or penalty.

R rows   V target vocabulary
"""

from dataclasses import dataclass

from jaxtyping import Float32, Int64
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Logprobs:
    """Natural logarithms: of the chosen token (rows,), and of the best tokens (rows, count)."""

    chosen: Tensor
    top_ids: Tensor
    top_values: Tensor


def token_logprobs(
    logits: Float32[Tensor, "bs num_draft_tokens target_vocab"],
    tokens: Int64[Tensor, "bs num_draft_tokens"],
    *,
    count: int,
) -> Logprobs:
    """The logprob of `tokens` after each node, and of the `count` best alternatives there.

    `chosen` is (bs, num_draft_tokens), the others have `count` columns more. `count` may exceed
    the vocabulary; then all of it is reported.
    """
    logprobs_BNV = logits.float().log_softmax(dim=-1)
    top = logprobs_BNV.topk(min(count, logprobs_BNV.shape[-1]), dim=-1)
    return Logprobs(
        chosen=logprobs_BNV.gather(-1, tokens.unsqueeze(-1)).squeeze(-1),
        top_ids=top.indices,
        top_values=top.values,
    )
