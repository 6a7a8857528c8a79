"""Two tiny recurrent models of different width: a target, and a draft that reads its hidden states.

A recurrent model keeps one vector per request where a transformer keeps a KV cache, so that the
whole worker fits on a page.
"""
# B requests   Ht target hidden   Hd draft hidden   V vocabulary

from __future__ import annotations

import torch
from torch import Tensor, nn

from shapecheck import Dims


class TargetModel(nn.Module):
    """The model whose tokens count."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        width, vocab = dims["target_hidden"], dims["target_vocab"]
        self.embed = nn.Embedding(vocab, width)
        self.cell = nn.GRUCell(width, width)
        self.lm_head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids_B: Tensor, hidden_BHt: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states and logits (B, V) after one more token of each request."""
        hidden_BHt = self.cell(self.embed(ids_B), hidden_BHt)
        return hidden_BHt, self.lm_head(hidden_BHt)


class DraftModel(nn.Module):
    """The model that guesses: narrower, and fed once an iteration with the target's hidden."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        width, vocab = dims["draft_hidden"], dims["draft_vocab"]
        self.embed = nn.Embedding(vocab, width)
        self.fc = nn.Linear(dims["extend_hidden"], width)
        self.cell = nn.GRUCell(width, width)
        self.lm_head = nn.Linear(width, vocab, bias=False)

    def extend(self, ids_B: Tensor, hidden_BHt: Tensor) -> tuple[Tensor, Tensor]:
        """Draft hidden states and logits, entered from the target's hidden states."""
        return self.forward(ids_B, torch.tanh(self.fc(hidden_BHt)))

    def forward(self, ids_B: Tensor, hidden_BHd: Tensor) -> tuple[Tensor, Tensor]:
        """Draft hidden states and logits (B, V) after one more token of each request."""
        hidden_BHd = self.cell(self.embed(ids_B), hidden_BHd)
        return hidden_BHd, self.lm_head(hidden_BHd)
