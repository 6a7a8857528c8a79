"""LanguageModel: what the phases ask of a target or a stand-alone draft.

T rows of the forward   H hidden size   X width of the hidden states fed to a draft   V vocabulary
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from engine.attention.base import AttentionPlan
from engine.models.config import ModelConfig
from engine.models.weights import WeightSlot

Role = Literal["target", "draft"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A forward's rows: after the final norm, and the kept layer inputs side by side."""

    rows_TH: Tensor
    aux_TX: Tensor | None


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
