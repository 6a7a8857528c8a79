"""Draft extend: one draft forward over what prefill or verify added.

Annotations are evaluated, so this module has no `from __future__ import annotations`.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Float32, Int32, Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.attention.base import Ragged
from shapecheck import carrier, dtype, ids, indexes, invariant


@carrier
@dataclass(slots=True, kw_only=True)
class PrefillExtendInput:
    """One draft forward after prefill: the target's hidden states, ids shifted as the draft wants.

    `seq_lens` are those of the requests whose prompt ends here; their last rows are selected.
    """

    hidden_states: Annotated[Float[Tensor, "tokens extend_hidden"], dtype("target")] | None
    input_ids: Annotated[Int64[Tensor, "tokens"], ids("target")]
    positions: Annotated[Int64[Tensor, "tokens"], indexes("max_context")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    select_index: Annotated[Int64[Tensor, "bs"], indexes("tokens")]
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
        """A selected row is the last of its prompt, or the token sampled behind it."""
        behind_B = self.seq_lens - self.positions[self.select_index]
        return (behind_B == 0) | (behind_B == 1)


@carrier
@dataclass(slots=True, kw_only=True)
class VerifyExtendInput:
    """One draft forward after verify: N rows a request, the accepted ones first, then padding.

    `seq_lens` are those before the iteration. Padding rows have position 0 and write to slot 0.
    """

    hidden_states: (
        Annotated[Float[Tensor, "bs*num_draft_tokens extend_hidden"], dtype("target")] | None
    )
    input_ids: Annotated[Int64[Tensor, "bs*num_draft_tokens"], ids("target")]
    positions: Annotated[Int64[Tensor, "bs*num_draft_tokens"], indexes("max_context")]
    accept_lens: Int32[Tensor, "bs"]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    select_index: Annotated[Int64[Tensor, "bs"], indexes("bs*num_draft_tokens")]
    max_seq_len: int

    @invariant
    def select_index_is_the_last_accepted_row(self) -> Tensor:
        """select_index[b] == b*N + A_b - 1."""
        requests = len(self.accept_lens)
        width = len(self.input_ids) // max(requests, 1)
        first_B = width * torch.arange(requests, device=self.select_index.device)
        return self.select_index == first_B + self.accept_lens - 1


@carrier
@dataclass(slots=True, kw_only=True)
class ExtendRows:
    """What the draft's extend forward gives at each request's selected row."""

    logits: Float32[Tensor, "bs draft_vocab"]
    hidden_states: Annotated[Float[Tensor, "bs recurrent_hidden"], dtype("draft")] | None
