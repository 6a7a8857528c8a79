"""LanguageModel and DraftModel: what the phases ask of a target and of a draft.

T rows of the forward   H hidden size   X width of the hidden states fed to a draft
R recurrent width   V vocabulary   Vd draft vocabulary
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from engine.attention.base import AttentionPlan
from engine.models.config import ModelConfig
from engine.models.weights import WeightSlot

Role = Literal["target", "draft"]
# Which models an engine loads and how wide everything is; "none" and "ngram" have no draft model.
Models = Literal["none", "ngram", "standalone", "eagle", "eagle3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A forward's rows: after the final norm, and the kept layer inputs side by side."""

    rows_TH: Tensor
    aux_TX: Tensor | None


# Which of a target's hidden states a draft is fed; fixed when the engine is built.
Feed = Callable[[Hidden], "Tensor | None"]


class LanguageModel(nn.Module, ABC):
    """Ids and positions in, hidden rows out; the plan decides what each row may see."""

    config: ModelConfig

    @abstractmethod
    def forward(self, ids_T: Tensor, positions_T: Tensor, plan: AttentionPlan) -> Hidden:
        """The hidden rows of these tokens; their K/V are in the pool."""

    @abstractmethod
    def logits(self, rows_TH: Tensor) -> Tensor:
        """(T, H) -> (T, V) fp32."""

    @abstractmethod
    def weights(self) -> Iterator[WeightSlot]:
        """Every tensor a checkpoint must hold."""

    @property
    def redundant(self) -> frozenset[str]:
        """Tensors a checkpoint may hold that this model does not read."""
        return frozenset()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The compute dtype."""
        return next(self.parameters()).dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRows:
    """A draft forward's rows, ready for its head, and what its next step is fed, if anything."""

    rows_TH: Tensor
    recurrent_TR: Tensor | None


class DraftModel(nn.Module, ABC):
    """A draft in the loop: `project` turns the target's hidden states into the loop's own."""

    config: ModelConfig

    @abstractmethod
    def project(self, hidden_TX: Tensor) -> Tensor:
        """(T, X) hidden states of the target -> (T, R) as the draft loop carries them."""

    @abstractmethod
    def forward(
        self, ids_T: Tensor, positions_T: Tensor, hidden_TR: Tensor | None, plan: AttentionPlan
    ) -> DraftRows:
        """Rows that predict the token after each id (target ids); their K/V are in the pool."""

    @abstractmethod
    def logits(self, rows_TH: Tensor) -> Tensor:
        """(T, H) -> (T, Vd) fp32."""

    @abstractmethod
    def weights(self) -> Iterator[WeightSlot]:
        """Every tensor a checkpoint must hold."""


class StandaloneDraft(DraftModel):
    """A whole language model as draft: it carries no hidden states and is fed none."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        self.config = model.config

    def project(self, hidden_TX: Tensor) -> Tensor:
        raise AssertionError("a stand-alone draft is fed no hidden states")

    def forward(
        self, ids_T: Tensor, positions_T: Tensor, hidden_TR: Tensor | None, plan: AttentionPlan
    ) -> DraftRows:
        assert hidden_TR is None, "a stand-alone draft is fed no hidden states"
        hidden = self.model(ids_T, positions_T, plan)
        return DraftRows(rows_TH=hidden.rows_TH, recurrent_TR=None)

    def logits(self, rows_TH: Tensor) -> Tensor:
        return self.model.logits(rows_TH)

    def weights(self) -> Iterator[WeightSlot]:
        return self.model.weights()
