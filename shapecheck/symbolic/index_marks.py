"""The marks of one trace: what the values of a memory, or of a part of it, are known to count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import torch

from shapecheck.dims.parse import Axis
from shapecheck.dims.vocabulary import Owner, lookup
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.index_operators import INTEGERS
from shapecheck.symbolic.shape_env import storage_key

# On a view of a part of a memory: what that part counts, apart from the rest.
_PART = "_shapecheck_indexed_part"


@dataclass(frozen=True, slots=True)
class Index:
    """Positions along an axis of this size, which `where` calls `axis`: a contract, or a sort."""

    axis: Axis
    size: Expression
    where: str
    by_contract: bool = True

    def __str__(self) -> str:
        return f"positions along {self.axis}"

    def names(self) -> frozenset[str]:
        """The names that the axis is made of."""
        return self.axis.symbols()

    @property
    def is_fixed(self) -> bool:
        """Whether the axis is as long in every batch: such an axis is no part of another."""
        declared = [lookup(name) for name in self.names()]
        return bool(declared) and not any(one is None or one.per_call for one in declared)

    @property
    def is_table(self) -> bool:
        """Whether the axis is one of a table that outlives the batch, such as its rows."""
        name = self.axis.as_symbol()
        declared = lookup(name) if name is not None else None
        return declared is not None and declared.owner is Owner.BATCH and not declared.per_call


@dataclass(slots=True)
class _Part:
    """What one view of a part counts; `own` once that was said of the part itself."""

    index: Index | None = None
    own: bool = False


@dataclass(slots=True)
class IndexMarks:
    """By memory; those of a part of a memory by view."""

    _marks: dict[int, Index] = field(default_factory=dict[int, Index])
    # Memory whose values are as a contract found them.
    _said: set[int] = field(default_factory=set[int])
    # Memory of constants and laid out positions.
    _plain: set[int] = field(default_factory=set[int])
    # Held so that an address is not reused; the memory of fake tensors is empty.
    _alive: dict[int, object] = field(default_factory=dict[int, object])

    def of(self, tensor: torch.Tensor) -> Index | None:
        """What the values are known to count."""
        if tensor.dtype not in INTEGERS or tensor.layout is not torch.strided:
            return None
        part = _part(tensor)
        if part is not None and part.own:
            return part.index
        return self._marks.get(storage_key(tensor)[0])

    def said(self, tensor: torch.Tensor) -> Index | None:
        """What a contract said of these very values, all of them."""
        whole = tensor.layout is torch.strided and _part(tensor) is None
        return self.of(tensor) if whole and storage_key(tensor)[0] in self._said else None

    def is_laid_out(self, tensor: torch.Tensor) -> bool:
        """Whether the values are constants or positions that follow from sizes alone."""
        return tensor.layout is torch.strided and storage_key(tensor)[0] in self._plain

    def made(self, tensor: torch.Tensor, index: Index | None, *, laid_out: bool) -> None:
        """An operator made the tensor."""
        key = self._hold(tensor)
        self._marks.pop(key, None)
        self._said.discard(key)
        self._plain.discard(key)
        if laid_out:
            self._plain.add(key)
        elif index is not None and tensor.dtype in INTEGERS:
            self._marks[key] = index

    def say(self, tensor: torch.Tensor, index: Index) -> None:
        """A contract says that the values count this."""
        self.put(tensor, index)
        self._said.add(storage_key(tensor)[0])

    def touch(self, tensor: torch.Tensor) -> None:
        """Some of the values are no longer what the contract found."""
        if tensor.layout is torch.strided:
            self._said.discard(storage_key(tensor)[0])

    def put(self, tensor: torch.Tensor, index: Index | None) -> None:
        """A memory, or the part that the view has, counts this."""
        part, key = _part(tensor), self._hold(tensor)
        if part is not None:
            part.index, part.own = index, True
        elif index is None:
            self._marks.pop(key, None)
        else:
            self._marks[key] = index

    def overwrite(self, tensor: torch.Tensor, index: Index | None) -> None:
        """Something was written over the values, which count this from now on."""
        if tensor.layout is not torch.strided:
            return
        self.touch(tensor)
        key = self._hold(tensor)
        self._plain.discard(key)
        if _part(tensor) is not None and self._marks.get(key) != index:
            self._marks.pop(key, None)
        self.put(tensor, index)

    def view(self, base: torch.Tensor, made: torch.Tensor, *, cut: bool) -> None:
        """`made` shows all of `base`, or a part."""
        above = _part(base)
        if not cut and above is None:
            return  # all of the memory
        part = above
        if cut:
            part = _Part() if above is None else _Part(above.index, above.own)
        setattr(made, _PART, part)

    def _hold(self, tensor: torch.Tensor) -> int:
        key, storage = storage_key(tensor)
        self._alive[key] = storage
        return key


def is_part(tensor: torch.Tensor) -> bool:
    """Whether the tensor is a view of a part of a memory."""
    return _part(tensor) is not None


def _part(tensor: torch.Tensor) -> _Part | None:
    return cast("_Part | None", getattr(tensor, _PART, None))
