"""PromptBatch: the chunks of prompts that one prefill reads, as the two models' inputs.

T rows of the target's forward   B requests whose prompt ends here
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Int64
from torch import Tensor

from engine.attention.base import Ragged
from engine.carriers import PrefillExtendInput, PrefillInput
from engine.scheduler.request import Request
from engine.transfer import to_device
from shapecheck import contract, ids, indexes


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Tokens [start, end) of a request; `ends` says that its prompt is read with them."""

    request: Request
    start: int
    end: int

    @property
    def ends(self) -> bool:
        """Whether the next token is to be sampled."""
        return self.end == len(self.request.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBatch:
    """Some chunks; `shift` is the proposer's."""

    chunks: Sequence[Chunk]
    shift: int
    device: torch.device

    @property
    def ending(self) -> list[Request]:
        """The requests whose prompt ends here, in order."""
        return [chunk.request for chunk in self.chunks if chunk.ends]

    def target_input(self) -> PrefillInput:
        """What the target reads: the chunks as they are."""
        ids, positions, last = [], [], []
        for chunk in self.chunks:
            ids += chunk.request.tokens[chunk.start : chunk.end]
            positions += range(chunk.start, chunk.end)
            if chunk.ends:
                last.append(len(ids) - 1)
        return PrefillInput(
            input_ids=self._ids(ids),
            positions=self._ids(positions),
            select_index=self._ids(last),
            seq_lens=self._seq_lens(),
            work=self._work(0),
        )

    def draft_input(self, hidden_TX: Tensor | None, bonus_B: Tensor) -> PrefillExtendInput:
        """What the draft reads: ids one ahead when shifted, else as they are and the bonus."""
        ids, positions, last = [], [], []
        extra = 1 - self.shift
        for chunk in self.chunks:
            # The token behind a chunk is known unless it is the one just sampled.
            known = chunk.request.tokens[chunk.start + self.shift : chunk.end + self.shift]
            end = chunk.end + extra * chunk.ends
            ids += known + [0] * (end - chunk.start - len(known))
            positions += range(chunk.start, end)
            if chunk.ends:
                last.append(len(ids) - 1)
        select_index = self._ids(last)
        return PrefillExtendInput(
            hidden_states=hidden_TX,
            input_ids=_with_bonus(self._ids(ids), select_index, bonus_B),
            positions=self._ids(positions),
            seq_lens=self._seq_lens(),
            req_rows_index=self._ids([request.row for request in self.ending]),
            select_index=select_index,
            work=self._work(extra),
        )

    def _work(self, extra: int) -> Ragged:
        return Ragged(
            req_rows=tuple(chunk.request.row for chunk in self.chunks),
            prefix_lens=tuple(chunk.start for chunk in self.chunks),
            extend_lens=tuple(
                chunk.end - chunk.start + extra * chunk.ends for chunk in self.chunks
            ),
        )

    def _seq_lens(self) -> Tensor:
        return self._ids([len(request.tokens) for request in self.ending])

    def _ids(self, values: Sequence[int]) -> Tensor:
        return to_device(torch.tensor(values, dtype=torch.int64), self.device)


@contract
def _with_bonus(
    ids_T: Annotated[Int64[Tensor, "tokens"], ids("target")],
    select_index: Annotated[Int64[Tensor, "bs"], indexes("tokens")],
    bonus_B: Annotated[Int64[Tensor, "bs"], ids("target")],
) -> Annotated[Int64[Tensor, "tokens"], ids("target")]:
    """The ids with the token that was just sampled in the last row of each prompt that ends."""
    return ids_T.index_copy(0, select_index, bonus_B)
