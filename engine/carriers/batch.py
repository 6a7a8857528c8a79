"""What stays with the live requests between iterations: their rows and the draft's state.

Annotations are evaluated, so this module has no `from __future__ import annotations`.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.sampling import RootLaw
from shapecheck import Dims, carrier, contract, dtype, ids, indexes, invariant


@carrier
@dataclass(slots=True, kw_only=True)
class BatchRows:
    """Where each live request stands: its row of the request table and its committed length.

    What the host knows itself stands beside it: `max_seq_len` bounds `seq_lens`, and
    `rows_on_host` repeats `req_rows_index`; neither needs to ask the device.
    """

    req_rows_index: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    seq_lens: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    max_seq_len: int
    rows_on_host: tuple[int, ...]

    @invariant
    def the_host_knows_the_rows(self) -> bool:
        """`rows_on_host` repeats `req_rows_index`."""
        return self.req_rows_index.tolist() == list(self.rows_on_host)


@carrier
@dataclass(slots=True, kw_only=True)
class DraftState:
    """What a draft carries from one iteration to the next: its first candidates, in draft ids.

    `draft_probs` is the law they were drawn from, None when they were chosen. Proposers without a
    draft model keep `topk_p` at zero: nothing is proposed yet.
    """

    topk_p: Float32[Tensor, "bs topk"]
    topk_index: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
    hidden_states: Annotated[Float[Tensor, "bs recurrent_hidden"], dtype("draft")] | None
    draft_probs: RootLaw | None
    bonus_tokens: Annotated[Int64[Tensor, "bs"], ids("target")]

    @classmethod
    @contract(phase="idle")
    def idle(cls, dims: Dims, device: torch.device) -> Self:
        """The state of no requests: 0 rows, every width and dtype as when there are some."""
        recurrent = dims.get("recurrent_hidden")
        return cls(
            topk_p=torch.zeros(0, dims["topk"], device=device),
            topk_index=torch.zeros(0, dims["topk"], dtype=torch.int64, device=device),
            hidden_states=None
            if recurrent is None
            else torch.zeros(0, recurrent, dtype=_dtype(dims.draft_dtype), device=device),
            draft_probs=None,
            bonus_tokens=torch.zeros(0, dtype=torch.int64, device=device),
        )

    def merge(self, other: Self) -> Self:
        """The requests of both, these first; a state of no requests adds no rows."""
        return type(self)(
            topk_p=torch.cat((self.topk_p, other.topk_p)),
            topk_index=torch.cat((self.topk_index, other.topk_index)),
            hidden_states=_joined(self.hidden_states, other.hidden_states),
            draft_probs=None
            if self.draft_probs is None or other.draft_probs is None
            else RootLaw.merge([self.draft_probs, other.draft_probs]),
            bonus_tokens=torch.cat((self.bonus_tokens, other.bonus_tokens)),
        )

    def filter(self, kept: Tensor) -> Self:
        """The requests at these int64 positions, in this order."""
        hidden = self.hidden_states
        return type(self)(
            topk_p=self.topk_p[kept],
            topk_index=self.topk_index[kept],
            hidden_states=None if hidden is None else hidden[kept],
            draft_probs=None if self.draft_probs is None else self.draft_probs.rows(kept),
            bonus_tokens=self.bonus_tokens[kept],
        )


def _joined(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return None
    return torch.cat((first, second))


def _dtype(name: str | None) -> torch.dtype:
    assert name is not None, "a hidden width without a draft dtype"
    return getattr(torch, name)
