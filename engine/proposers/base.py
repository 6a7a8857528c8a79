"""Proposer: what an algorithm brings to an iteration; one object for the life of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor

from engine.attention.base import AttentionBackend
from engine.carriers import (
    BatchRows,
    DraftState,
    PrefillExtendInput,
    VerifyExtendInput,
    VerifyInput,
)
from engine.graphs.runner import Graphs
from engine.kv.table import RequestTable
from engine.models.base import DraftModel, Hidden, Models
from engine.ops import TreeOps
from engine.phases.accept import Accept
from engine.sampling.batch import BatchSampling
from shapecheck import Dims

if TYPE_CHECKING:  # the config asks the registry for the proposers' names
    from engine.config import EngineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a proposer is built from; `draft` and `attention` are None without a draft model."""

    config: EngineConfig
    dims: Dims
    table: RequestTable
    device: torch.device
    draft: DraftModel | None
    attention: AttentionBackend | None
    graphs: Graphs
    ops: TreeOps


class Proposer(ABC):
    """Proposes a tree from a state, and reads what was committed into the next state.

    `models` says what it works with: which draft is loaded, and how wide everything is.
    `shift` is 1 when the draft reads ids one position ahead (EAGLE: the hidden state of token p
    beside token p+1), 0 when it reads them where they stand. `may_pass` says that it may have
    nothing to propose and keeps no KV of its own, so that plain decoding can take a turn.
    `runs_ahead` says that it proposes from what is on the device alone, and for one token an
    iteration, so that the next iteration can be launched before this one is read.
    """

    models: ClassVar[Models] = "ngram"
    shift: ClassVar[int] = 0
    may_pass: ClassVar[bool] = False
    runs_ahead: ClassVar[bool] = False
    accept: Accept

    def __init__(self, parts: Parts) -> None:
        self.dims = parts.dims
        self.table = parts.table
        self.device = parts.device

    @classmethod
    def build(cls, parts: Parts) -> Self:
        """The proposer of an engine."""
        return cls(parts)

    @staticmethod
    def feed(hidden: Hidden) -> Tensor | None:
        """Which of the target's hidden states the draft is fed: none unless overridden."""
        return None

    @property
    def window(self) -> int:
        """Table columns an iteration may use behind a request's last committed position."""
        return self.dims["num_draft_tokens"]

    def idle(self) -> DraftState:
        """The state of no requests."""
        return DraftState.idle(self.dims, self.device)

    @abstractmethod
    def after_prefill(self, batch: PrefillExtendInput, sampling: BatchSampling) -> DraftState:
        """The state of the requests whose prompt has ended."""

    @abstractmethod
    def propose(self, state: DraftState, rows: BatchRows, sampling: BatchSampling) -> VerifyInput:
        """A tree for every live request."""

    @abstractmethod
    def after_verify(self, batch: VerifyExtendInput, sampling: BatchSampling) -> DraftState:
        """The state after a commit."""

    def has_guess(self, rows: Sequence[int]) -> bool:
        """Whether a tree for the requests of these table rows is worth its verification."""
        return True

    def observe(self, row: int, tokens: Sequence[int]) -> None:
        """The request of this table row has grown by these tokens, its prompt at first."""
        return

    def forget(self, row: int) -> None:
        """The table row no longer belongs to that request."""
        return
