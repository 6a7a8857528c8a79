"""RMSNorm over the last axis.

H width of the last axis
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.weights import Axis, WeightSlot


class RMSNorm(nn.Module):
    """x / rms(x) * weight; the mean of squares is taken in fp32 whatever the dtype."""

    def __init__(self, width: Axis, *, eps: float) -> None:
        super().__init__()
        self.width = width
        self.eps = eps
        self.weight_H = nn.Parameter(torch.empty(width.size), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., H) -> (..., H)."""
        return F.rms_norm(x, (self.width.size,), self.weight_H, self.eps)

    def weights(self) -> Iterator[WeightSlot]:
        """The one slot `weight`."""
        yield WeightSlot(name="weight", axes=(self.width,), destination=self.weight_H.data)
