"""Dims whose numbers are symbols: what an engine under trace reads its widths from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from pydantic import PrivateAttr

from shapecheck.dims.model import Dims, Size
from shapecheck.dims.vocabulary import Owner
from shapecheck.symbolic.dtypes import TARGET_DTYPE


class TracedDims(Dims):
    """A Dims that hands out the sizes of a trace; names, owners and origins are unchanged."""

    # A SymInt passes for an int everywhere but in isinstance.
    _traced: dict[str, int] = PrivateAttr(default_factory=dict[str, int])

    @staticmethod
    def of(
        dims: Dims | None,
        sizes: Mapping[str, int],
        owners: Mapping[str, Owner],
        *,
        draft_dtype: torch.dtype,
    ) -> TracedDims:
        """The Dims of one trace, over a real pair's or over the vocabulary."""
        if dims is not None:
            known = dict(dims.sizes)
        else:
            known = {
                name: Size(value=0, owner=owner, origin="the trace's own number")
                for name, owner in owners.items()
            }
        traced = TracedDims(
            sizes=known,
            target_dtype=str(TARGET_DTYPE).removeprefix("torch."),
            draft_dtype=str(draft_dtype).removeprefix("torch."),
        )
        traced._traced.update({name: sizes[name] for name in known if name in sizes})
        return traced

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A Dims of the same trace: what is not replaced keeps its symbol."""
        copied = super().model_copy(update=update, deep=deep)
        if copied is not self:
            for name, size in copied.sizes.items():
                if size is self.sizes.get(name) and name in self._traced:
                    copied._traced[name] = self._traced[name]
                elif size.value is not None:
                    copied._traced[name] = size.value
        return copied

    def __eq__(self, other: object) -> bool:
        """Only itself: symbols of two traces are not comparable."""
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def symbolic(self) -> bool:
        """True: the numbers are symbols."""
        return True

    def __getitem__(self, name: str) -> int:
        """The symbol of `name`, or the error of Dims when it has none."""
        size = self._traced.get(name)
        return super().__getitem__(name) if size is None else size

    def get(self, name: str) -> int | None:
        """The symbol of `name`, or None when it has none in this pair."""
        return self._traced.get(name)
