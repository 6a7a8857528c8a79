"""The marks of one trace: what the values of a memory, or of a part of it, are known to count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
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
    """Positions along an axis of this size, which `where` calls `axis`: a contract, or a sort.

    Where a contract gives them a `pad`, some may be that instead.
    """

    axis: Axis
    size: Expression
    where: str
    by_contract: bool = True
    pad: int | None = field(default=None, compare=False)

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
    """What one view of a part counts; `own` once that was said of the part itself.

    That holds until the memory is written through another view: after more than `writes`.
    """

    index: Index | None = None
    own: bool = False
    laid_out: bool = False
    writes: int = 0
    # Shows other numbers than its memory holds, made of the same bytes.
    recast: bool = False


@dataclass(slots=True)
class IndexMarks:
    """By memory; those of a part of a memory by view."""

    _marks: dict[int, Index] = field(default_factory=dict[int, Index])
    # Memory whose values are as a contract found them.
    _said: set[int] = field(default_factory=set[int])
    # Memory of constants and laid out positions.
    _plain: set[int] = field(default_factory=set[int])
    # Memory with constants all over some part: which part is not known.
    _patched: set[int] = field(default_factory=set[int])
    # Memory whose largest value may be a limit that the code set.
    _limited: set[int] = field(default_factory=set[int])
    # Memory of conditions as whole numbers, and of what they count: nothing that came in.
    _flags: set[int] = field(default_factory=set[int])
    _writes: Counter[int] = field(default_factory=Counter[int])
    # The memory that the values were computed from; what is laid out comes from none.
    _sources: dict[int, frozenset[int]] = field(default_factory=dict[int, "frozenset[int]"])
    # Held so that an address is not reused; the memory of fake tensors is empty.
    _alive: dict[int, object] = field(default_factory=dict[int, object])

    def of(self, tensor: torch.Tensor) -> Index | None:
        """What the values are known to count."""
        if tensor.dtype not in INTEGERS or tensor.layout is not torch.strided:
            return None
        part, key = _part(tensor), storage_key(tensor)[0]
        if part is not None and part.own:
            return part.index if self._holds(part, key) else None
        return None if part is not None and key in self._patched else self._marks.get(key)

    def said(self, tensor: torch.Tensor) -> Index | None:
        """What a contract said of these very values, all of them."""
        whole = tensor.layout is torch.strided and _part(tensor) is None
        return self.of(tensor) if whole and storage_key(tensor)[0] in self._said else None

    def is_laid_out(self, tensor: torch.Tensor) -> bool:
        """Whether the values are constants or positions that follow from sizes alone."""
        if tensor.layout is not torch.strided:
            return False
        part, key = _part(tensor), storage_key(tensor)[0]
        return key in self._plain or (part is not None and part.laid_out and self._holds(part, key))

    def is_limited(self, tensor: torch.Tensor) -> bool:
        """Whether the code may have limited the values; those of a contract may be any."""
        return tensor.layout is torch.strided and storage_key(tensor)[0] in self._limited

    def is_flag(self, tensor: torch.Tensor) -> bool:
        """Whether the values follow from conditions and constants: the sum of such is a count."""
        if tensor.dtype not in INTEGERS or self.is_laid_out(tensor):
            return True
        return tensor.layout is torch.strided and storage_key(tensor)[0] in self._flags

    def sources(self, tensor: torch.Tensor) -> frozenset[int]:
        """The memory that the values were computed from."""
        if tensor.layout is not torch.strided or self.is_laid_out(tensor):
            return frozenset()
        key = self._hold(tensor)
        return self._sources.get(key) or frozenset({key})

    def made(
        self,
        tensor: torch.Tensor,
        index: Index | None,
        sources: frozenset[int],
        *,
        laid_out: bool,
        limited: bool,
        flags: bool = False,
    ) -> None:
        """An operator made the tensor."""
        key = self._hold(tensor)
        _put(self._flags, key, there=flags)
        self._sources[key] = sources
        self._said.discard(key)
        self._is_now(key, index if tensor.dtype in INTEGERS else None, laid_out, limited)

    def say(self, tensor: torch.Tensor, index: Index) -> None:
        """A contract says that the values count this; laid out ones still count anything."""
        part, key = _part(tensor), self._hold(tensor)
        if self.is_laid_out(tensor):
            return
        if part is None:
            self._marks[key] = index
            if key not in self._limited:
                self._said.add(key)
        elif self._holds(part, key) or key not in self._patched:
            part.index, part.own, part.laid_out = index, True, False
            part.writes = self._writes[key]

    def mix(self, tensor: torch.Tensor, sources: frozenset[int], *, flags: bool = False) -> None:
        """What is written next comes from these."""
        if tensor.layout is torch.strided:
            _put(self._flags, self._hold(tensor), there=flags)
            # Laid out so far: what was there came from nowhere.
            self._sources[self._hold(tensor)] = self.sources(tensor) | sources

    def keep(self, tensor: torch.Tensor) -> None:
        """Constants took the place of some values, and the others count what they did."""
        if tensor.layout is not torch.strided:
            return
        part, key = _part(tensor), self._hold(tensor)
        self._said.discard(key)
        self._limited.add(key)
        if part is not None and self._holds(part, key):
            part.writes += 1
        if part is not None and part.recast:
            self._marks.pop(key, None)
        self._writes[key] += 1

    def overwrite(
        self,
        tensor: torch.Tensor,
        index: Index | None,
        *,
        laid_out: bool = False,
        limited: bool = True,
    ) -> None:
        """Something was written over the values, which count this from now on."""
        if tensor.layout is not torch.strided:
            return
        part, key = _part(tensor), self._hold(tensor)
        self._said.discard(key)
        self._writes[key] += 1
        if part is None:
            # Floats count nothing: those of a buffer that was cleared stand for a batch to come.
            self._is_now(key, index, laid_out and tensor.dtype in INTEGERS, limited)
            return
        part.index, part.own, part.laid_out = None if laid_out else index, True, laid_out
        part.writes = self._writes[key]
        self._limited.add(key)
        if laid_out and not part.recast:
            self._patched.add(key)  # the rest is what it was
            return
        self._plain.discard(key)
        if part.recast or self._marks.get(key) != index:
            self._marks.pop(key, None)

    def view(self, base: torch.Tensor, made: torch.Tensor, *, cut: bool) -> None:
        """`made` shows all of `base`, or a part, or other numbers made of its bytes."""
        above, key = _part(base), self._hold(base)
        if made.dtype != base.dtype:
            laid_out, writes = self.is_laid_out(base), self._writes[key]
            part = _Part(own=True, laid_out=laid_out, writes=writes, recast=True)
        elif not cut:
            part = above  # None: all of the memory
        else:
            part = _Part() if above is None else replace(above)
        if part is not None:
            setattr(made, _PART, part)

    def _holds(self, part: _Part, key: int) -> bool:
        return part.own and part.writes == self._writes[key]

    def _is_now(self, key: int, index: Index | None, laid_out: bool, limited: bool) -> None:
        """All of a memory is this."""
        self._patched.discard(key)
        _put(self._plain, key, there=laid_out)
        _put(self._limited, key, there=limited)
        if index is None or laid_out:
            self._marks.pop(key, None)
        else:
            self._marks[key] = index

    def _hold(self, tensor: torch.Tensor) -> int:
        key, storage = storage_key(tensor)
        self._alive[key] = storage
        return key


def is_part(tensor: torch.Tensor) -> bool:
    """Whether the tensor is a view of a part of a memory."""
    return _part(tensor) is not None


def _put(into: set[int], key: int, *, there: bool) -> None:
    if there:
        into.add(key)
    else:
        into.discard(key)


def _part(tensor: torch.Tensor) -> _Part | None:
    return cast("_Part | None", getattr(tensor, _PART, None))
