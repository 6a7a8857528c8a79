"""Prefill: new tokens of the prompts, and what the target says of them.

Annotations are evaluated, so this module has no `from __future__ import annotations`.
"""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Float, Float32, Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.attention.base import Ragged
from shapecheck import carrier, dtype, ids, indexes, invariant


@carrier
@dataclass(slots=True, kw_only=True)
class PrefillInput:
    """New tokens of some requests, in order; `select_index` is the last row of each request
    whose prompt ends here, the only rows that need logits."""

    input_ids: Annotated[Int64[Tensor, "tokens"], ids("target")]
    positions: Annotated[Int64[Tensor, "tokens"], indexes("max_context")]
    select_index: Annotated[Int64[Tensor, "bs"], indexes("tokens")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    work: Ragged

    @invariant
    def work_counts_the_rows(self) -> bool:
        """The lengths that the host planned with are those of the tensors."""
        return sum(self.work.extend_lens) == len(self.input_ids)

    @invariant
    def positions_follow_the_work(self) -> bool:
        """The rows of a request stand at the columns that the host planned."""
        return self.positions.tolist() == self.work.columns()

    @invariant
    def a_prompt_ends_at_its_length(self) -> Tensor:
        """A selected row is the last of its prompt."""
        return self.positions[self.select_index] + 1 == self.seq_lens


@carrier
@dataclass(slots=True, kw_only=True)
class PrefillOutput:
    """Logits where a prompt ends, and the hidden states of every row for the draft."""

    logits: Float32[Tensor, "bs target_vocab"]
    hidden_states: Annotated[Float[Tensor, "tokens extend_hidden"], dtype("target")] | None
