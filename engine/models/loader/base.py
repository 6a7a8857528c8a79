"""Checkpoint: named tensors with known shapes, read one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor


class Checkpoint(ABC):
    """`source` names the folder or file; shapes are known before any tensor is read."""

    source: str

    @abstractmethod
    def names(self) -> Iterable[str]:
        """Every tensor it holds, by its Hugging Face name."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor it holds."""

    @abstractmethod
    def where(self, name: str) -> str:
        """The file that holds the tensor."""

    @abstractmethod
    def tensor(self, name: str) -> Tensor:
        """The tensor itself, on the CPU."""

    def ignorable(self) -> Iterable[str]:
        """Tensors that some tools save and no model needs."""
        return [
            name
            for name in self.names()
            if name.endswith((".rotary_emb.inv_freq", ".attn.bias", ".masked_bias"))
        ]
