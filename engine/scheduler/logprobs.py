"""Log-probabilities of emitted tokens, read from the device only when somebody asks.

B requests   N verify width, root included   V target vocabulary
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.carriers import VerifyOutput
from engine.sampling import token_logprobs
from engine.scheduler.request import Request, TokenLogprob


def path_logprobs(
    requests: Sequence[Request], verified: VerifyOutput
) -> list[list[TokenLogprob]] | None:
    """For each request the logprobs of its emitted tokens, in order; None when nobody asks."""
    paths = verified.accept_index
    return _logprobs(requests, verified.logits, verified.predict, paths)


def prompt_logprobs(
    requests: Sequence[Request], logits_BV: Tensor, tokens_B: Tensor
) -> list[list[TokenLogprob]] | None:
    """The same for the tokens sampled where a prompt ends."""
    root_B1 = torch.zeros_like(tokens_B).unsqueeze(1)
    return _logprobs(requests, logits_BV.unsqueeze(1), tokens_B.unsqueeze(1), root_B1)


def _logprobs(
    requests: Sequence[Request], logits_BNV: Tensor, tokens_BN: Tensor, paths: Tensor
) -> list[list[TokenLogprob]] | None:
    asked = [request.params.logprobs for request in requests]
    if all(count is None for count in asked):
        return None
    found = token_logprobs(logits_BNV, tokens_BN, count=max(count or 0 for count in asked))
    tokens, chosen = tokens_BN.tolist(), found.chosen.tolist()
    top_ids, top_values = found.top_ids.tolist(), found.top_values.tolist()
    result: list[list[TokenLogprob]] = []
    for row, (count, path) in enumerate(zip(asked, paths.tolist(), strict=True)):
        nodes = [node for node in path if node >= 0] if count is not None else []
        result.append(
            [
                TokenLogprob(
                    token=tokens[row][node],
                    logprob=chosen[row][node],
                    top=tuple(
                        zip(top_ids[row][node][:count], top_values[row][node][:count], strict=True)
                    ),
                )
                for node in nodes
            ]
        )
    return result
