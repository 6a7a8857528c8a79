"""Mlp: the gated feed-forward block.

T rows   H hidden
"""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.layers.linear import Linear
from engine.models.weights import Axis, WeightSlot


class Mlp(nn.Module):
    """down(silu(gate(x)) * up(x)) with gate and up in one product."""

    def __init__(self, config: ModelConfig, *, role: str) -> None:
        super().__init__()
        hidden, ffn = Axis(f"{role}_hidden", config.hidden), Axis(f"{role}_ffn", config.ffn)
        self.gate_up = Linear(hidden, {"gate_proj": ffn, "up_proj": ffn}, bias=config.mlp_bias)
        self.down = Linear(ffn, {"down_proj": hidden}, bias=config.mlp_bias)

    def forward(self, x_TH: Tensor) -> Tensor:
        """(T, H) -> (T, H)."""
        gate, up = self.gate_up(x_TH).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)

    def weights(self) -> Iterator[WeightSlot]:
        """Slots named as in a checkpoint's `mlp`."""
        yield from self.gate_up.weights()
        yield from self.down.weights()
