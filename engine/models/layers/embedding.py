"""Embedding and LmHead: token ids to rows, rows to logits; tied models share one matrix.

T rows of the forward   H hidden size   V vocabulary
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.weights import Axis, WeightSlot


class Embedding(nn.Module):
    """Row `id` of the matrix for every id."""

    def __init__(self, vocab: Axis, hidden: Axis) -> None:
        super().__init__()
        self.vocab = vocab
        self.hidden = hidden
        self.weight_VH = nn.Parameter(torch.empty(vocab.size, hidden.size), requires_grad=False)

    def forward(self, ids_T: Tensor) -> Tensor:
        """(T,) -> (T, H)."""
        return F.embedding(ids_T, self.weight_VH)

    def weights(self) -> Iterator[WeightSlot]:
        """The one slot `weight`."""
        yield WeightSlot(
            name="weight", axes=(self.vocab, self.hidden), destination=self.weight_VH.data
        )


class LmHead(nn.Module):
    """Logits in fp32; `tie` makes it read another module's matrix instead of its own."""

    def __init__(self, vocab: Axis, hidden: Axis, *, tie: Embedding | None = None) -> None:
        super().__init__()
        self.vocab = vocab
        self.hidden = hidden
        self.tied = tie is not None
        self.weight_VH = (
            tie.weight_VH
            if tie is not None
            else nn.Parameter(torch.empty(vocab.size, hidden.size), requires_grad=False)
        )

    @property
    def out_features(self) -> int:
        """Rows of the loaded matrix: the vocabulary the logits range over."""
        return self.weight_VH.shape[0]

    def forward(self, x_TH: Tensor) -> Tensor:
        """(T, H) -> (T, V) fp32."""
        return F.linear(x_TH, self.weight_VH).float()

    def weights(self) -> Iterator[WeightSlot]:
        """The slot `weight`, or none when tied."""
        if not self.tied:
            yield WeightSlot(
                name="weight", axes=(self.vocab, self.hidden), destination=self.weight_VH.data
            )
