"""What the values of an integer tensor count: the axis that a contract says they index.

A contract's `indexes(...)` marks a tensor that nothing is known of, and what moves the values takes
the mark along; arithmetic makes other numbers of them. Where such a tensor crosses as an index of
another axis, it is told by name, before anything is looked up. Constants and positions that are
laid out (`zeros`, `arange`) are an index of any axis, and so is what follows from them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch

from shapecheck.dims.parse import Axis
from shapecheck.dims.vocabulary import lookup
from shapecheck.symbolic.domains import Domains, Ids
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.index_operators import (
    FILLED,
    FILLS,
    ONES,
    SELECTS,
    TAKES,
    UNKNOWN,
    WRITES,
    ZEROS,
    is_cut,
)
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.shape_env import Operator, storage_key, written
from shapecheck.symbolic.sizes import Size

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten
_INTEGERS = (torch.int64, torch.int32)
# On a view of a part of a memory: what that part counts, apart from the rest.
_PART = "_shapecheck_indexed_part"


@dataclass(frozen=True, slots=True)
class Index:
    """Positions along an axis of this size, which the contract `where` calls `axis`."""

    axis: Axis
    size: Expression
    where: str

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


@dataclass(slots=True)
class _Part:
    """What one view of a part counts; `own` once that was said of the part itself."""

    index: Index | None = None
    own: bool = False


@dataclass(slots=True)
class Indices:
    """The marks of one trace, by memory; those of a part of a memory by view."""

    recorder: Recorder
    _marks: dict[int, Index] = field(default_factory=dict[int, Index])
    # Memory of constants and laid out positions.
    _plain: set[int] = field(default_factory=set[int])
    # Held so that an address is not reused; the memory of fake tensors is empty.
    _alive: dict[int, object] = field(default_factory=dict[int, object])

    def of(self, tensor: torch.Tensor) -> Index | None:
        """What the values are known to count."""
        if tensor.dtype not in _INTEGERS or tensor.layout is not torch.strided:
            return None
        part = _part(tensor)
        if part is not None and part.own:
            return part.index
        return self._marks.get(self._key(tensor))

    def mark(self, tensor: torch.Tensor, index: Index) -> None:
        """A contract says what the values count; laid out ones still count anything."""
        if not self.is_laid_out(tensor):
            self._set(tensor, index)

    def another(self, wanted: Index, tensor: torch.Tensor, domains: Domains) -> Index | Ids | None:
        """What the values count instead of `wanted`, if that is sure."""
        found, parties = self.of(tensor), self.recorder.parties
        if found is not None:
            fixed = found.is_fixed or wanted.is_fixed
            # Which ids of two vocabularies meet is for the domains to say.
            both = all(name is not None for name in map(self._model, (found, wanted)))
            if found.axis == wanted.axis or both or not fixed:
                return None
            sizes = (Size(one.size, self.recorder) for one in (found, wanted))
            return None if next(sizes) == next(sizes) else found
        tag = domains.of(tensor)
        if not isinstance(tag, Ids) or not parties.is_model(tag.name):
            return None
        if self.is_laid_out(tensor) or _part(tensor) is not None:
            return None
        return tag if wanted.is_fixed and self._model(wanted) is None else None

    def _model(self, index: Index) -> str | None:
        """The one name of its axis, where that is a model's."""
        name = index.axis.as_symbol()
        return name if name is not None and self.recorder.parties.is_model(name) else None

    def is_laid_out(self, tensor: torch.Tensor) -> bool:
        """Whether the values are constants or positions that follow from sizes alone."""
        return self._key(tensor) in self._plain

    def follow(
        self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: object
    ) -> None:
        """Pass on what `func` moves, and forget what it overwrites."""
        for one in self.recorder.unseen:
            self._overwrite(one, None)
        made = [one for one in tensors(result) if one.layout is torch.strided]
        packet = func.overloadpacket
        if func.is_view:
            self._view(args[0], made, cut=is_cut(packet, args))
            return
        into = list(written(func, args, kwargs))
        for one in into:
            self._write(one, packet, args, kwargs)
        operands = list(tensors((args, kwargs)))
        fills = packet in ZEROS or packet in ONES or packet in FILLED
        laid_out = fills or (packet not in UNKNOWN and all(map(self.is_laid_out, operands)))
        index = self._of_result(packet, args)
        for one in made:
            if any(one is other for other in into):
                continue
            key = self._hold(one)
            self._marks.pop(key, None)
            self._plain.discard(key)
            if laid_out:
                self._plain.add(key)
            elif index is not None and one.dtype in _INTEGERS:
                self._marks[key] = index

    def _of_result(self, packet: object, args: Sequence[Any]) -> Index | None:
        if packet in TAKES:
            return self.of(args[0]) if isinstance(args[0], torch.Tensor) else None
        return self._common(tensors(args)) if packet in SELECTS else None

    def _common(self, operands: Iterable[torch.Tensor]) -> Index | None:
        """What all of these count, conditions and constants left aside; None when they differ."""
        counted = [
            self.of(one) for one in operands if one.dtype in _INTEGERS and not self.is_laid_out(one)
        ]
        return counted[0] if counted and all(one == counted[0] for one in counted) else None

    def _write(
        self, into: torch.Tensor, packet: object, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """`into` holds what the operator wrote, beside what is left of it."""
        place = WRITES.get(packet)
        if packet in FILLS and args and args[0] is into:
            # Constants all over it count nothing; elsewhere the rest is what it was.
            if packet in (_aten.zero_, _aten.fill_) and _part(into) is None:
                self._overwrite(into, None)
            return
        value = args[place] if place is not None and len(args) > place and not kwargs else None
        if value is None or args[0] is not into:
            self._overwrite(into, None)
        elif not isinstance(value, torch.Tensor) or self.is_laid_out(value):
            return
        elif packet is _aten.copy_ or self.is_laid_out(into):
            self._overwrite(into, self.of(value))
        else:
            self._overwrite(into, self._common((into, value)))

    def _overwrite(self, tensor: torch.Tensor, index: Index | None) -> None:
        if tensor.layout is not torch.strided:
            return
        key = self._hold(tensor)
        self._plain.discard(key)
        if _part(tensor) is not None and self._marks.get(key) != index:
            self._marks.pop(key, None)
        self._set(tensor, index)

    def _set(self, tensor: torch.Tensor, index: Index | None) -> None:
        part, key = _part(tensor), self._hold(tensor)
        if part is not None:
            part.index, part.own = index, True
        elif index is None:
            self._marks.pop(key, None)
        else:
            self._marks[key] = index

    def _view(self, base: torch.Tensor, made: Sequence[torch.Tensor], *, cut: bool) -> None:
        above = _part(base)
        if not cut and above is None:
            return  # all of the memory
        for one in made:
            part = above
            if cut:
                part = _Part() if above is None else _Part(above.index, above.own)
            setattr(one, _PART, part)

    def _hold(self, tensor: torch.Tensor) -> int:
        key, storage = storage_key(tensor)
        self._alive[key] = storage
        return key

    def _key(self, tensor: torch.Tensor) -> int:
        return storage_key(tensor)[0] if tensor.layout is torch.strided else -1


def _part(tensor: torch.Tensor) -> _Part | None:
    return cast("_Part | None", getattr(tensor, _PART, None))
