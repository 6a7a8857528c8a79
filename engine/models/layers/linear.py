"""Linear: one matrix product for all projections that read the same rows.

T rows of the forward   I input width   O summed output width of the merged projections
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.weights import Axis, WeightSlot


class Linear(nn.Module):
    """x @ weight.T + bias, where `parts` are the checkpoint's matrices, stacked by rows.

    q, k and v (or gate and up) read the same input: one product is one pass over the weights.
    """

    bias_O: Tensor | None

    def __init__(self, width: Axis, parts: dict[str, Axis], *, bias: bool = False) -> None:
        super().__init__()
        self.width = width
        self.parts = parts
        total = sum(axis.size for axis in parts.values())
        self.weight_OI = nn.Parameter(torch.empty(total, width.size), requires_grad=False)
        self.bias_O = nn.Parameter(torch.empty(total), requires_grad=False) if bias else None

    def forward(self, x_TI: Tensor) -> Tensor:
        """(T, I) -> (T, O)."""
        return F.linear(x_TI, self.weight_OI, self.bias_O)

    def weights(self) -> Iterator[WeightSlot]:
        """One slot for every stacked matrix and bias."""
        start = 0
        for name, axis in self.parts.items():
            rows = slice(start, start + axis.size)
            yield WeightSlot(
                name=f"{name}.weight",
                axes=(axis, self.width),
                destination=self.weight_OI.data[rows],
            )
            if self.bias_O is not None:
                yield WeightSlot(
                    name=f"{name}.bias", axes=(axis,), destination=self.bias_O.data[rows]
                )
            start += axis.size
