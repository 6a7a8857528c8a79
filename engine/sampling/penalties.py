"""Penalties for tokens seen before, along every path of a draft tree.

B requests   N verify width, root included   V target vocabulary
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import torch
from jaxtyping import Bool, Float32, Int32, Int64
from torch import Tensor

from engine.sampling.controls import BatchControls
from engine.transfer import to_device
from shapecheck import carrier, contract, ids


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """What each request has seen before the root of its tree: its prompt, and its output so far."""

    in_prompt: Bool[Tensor, "bs target_vocab"]
    in_output: Int32[Tensor, "bs target_vocab"]

    @classmethod
    @contract
    def of(
        cls,
        prompts: Sequence[Sequence[int]],
        outputs: Sequence[Sequence[int]],
        *,
        target_vocab: int,
        device: torch.device,
    ) -> Self:
        """The counts of token histories held on the host; ids are target ids."""
        in_prompt = torch.zeros(len(prompts), target_vocab, dtype=torch.int32)
        in_output = torch.zeros(len(outputs), target_vocab, dtype=torch.int32)
        for row, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
            in_prompt[row] = _count(prompt, target_vocab)
            in_output[row] = _count(output, target_vocab)
        return cls(
            in_prompt=to_device(in_prompt > 0, device), in_output=to_device(in_output, device)
        )


@contract
def penalise(
    logits: Float32[Tensor, "bs nodes target_vocab"],
    draft_tokens: Annotated[Int64[Tensor, "bs nodes"], ids("target")],
    tree_mask: Bool[Tensor, "bs nodes nodes"],
    counts: TokenCounts,
    controls: BatchControls,
) -> Float32[Tensor, "bs nodes target_vocab"]:
    """Logits as if each node's own path were already output.

    Repetition divides a positive and multiplies a negative logit of a token in prompt or output;
    presence and frequency subtract once per token and per occurrence in the output.
    """
    rows, width = draft_tokens.shape
    path_BNV = counts.in_output.unsqueeze(1).repeat(1, width, 1)
    path_BNV.scatter_add_(2, draft_tokens.unsqueeze(1).expand(rows, width, width), tree_mask.int())
    in_output_BNV = path_BNV > 0
    seen_BNV = in_output_BNV | counts.in_prompt.unsqueeze(1)
    repetition_B11 = controls.repetition_penalty.view(-1, 1, 1)
    repeated_BNV = torch.where(logits > 0, logits / repetition_B11, logits * repetition_B11)
    return (
        torch.where(seen_BNV, repeated_BNV, logits)
        - controls.presence_penalty.view(-1, 1, 1) * in_output_BNV
        - controls.frequency_penalty.view(-1, 1, 1) * path_BNV
    )


def _count(tokens: Sequence[int], vocab: int) -> Tensor:
    return torch.bincount(torch.tensor(tokens, dtype=torch.int64), minlength=vocab).int()
