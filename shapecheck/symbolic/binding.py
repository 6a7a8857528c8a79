"""The names of one call under trace: each has the first size seen, or the trace's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from shapecheck.dims.model import Dims
from shapecheck.dims.parse import Axis
from shapecheck.dims.vocabulary import lookup
from shapecheck.runtime.reach import MODELS, Reach, owner_of
from shapecheck.spec import Spec, TensorSpec
from shapecheck.symbolic.recorder import Recorder
from shapecheck.symbolic.shape_env import expression
from shapecheck.symbolic.sizes import Size


@dataclass(frozen=True, slots=True)
class Held:
    """A value that crosses, its path, and what it should be."""

    value: object
    path: str
    spec: Spec
    alternatives: tuple[tuple[str, TensorSpec], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names(Reach):
    """What is known at a boundary under trace: sizes stand where numbers do at run time."""

    recorder: Recorder
    per_call: bool  # no Dims is in reach, so names that are no model's bind per call

    def number(self, name: str) -> int | None:
        """The size of a name: bound by this call, or the trace's own."""
        found = self.bound.get(name)
        if found is not None or self.dims is None or self._binds(name):
            return found
        return cast("int | None", self._own(name))

    def _own(self, name: str) -> Size | None:
        """The size that the trace itself has for a name."""
        size = self.dims.get(name) if self.dims is not None else None
        return None if size is None else Size(expression(size), self.recorder)

    def along(self, axis: Axis) -> Size | None:
        """The size of an axis that values count along, None while a name of it has none.

        A name of Dims that no tensor of this call has is the trace's, in reach or not.
        """
        for name in axis.symbols():
            declared = lookup(name)
            per_call = declared is None or declared.per_call
            if self.number(name) is None and (per_call or self._own(name) is None):
                return None

        def size(name: str) -> int:
            found = self.number(name)
            return cast(int, self._own(name) if found is None else found)

        found = axis.evaluate(size)
        return found if isinstance(found, Size) else Size(expression(found), self.recorder)

    def same(self, number: int) -> list[str]:
        """Every name whose size this is."""
        wanted = cast(Size, number)
        names = [*(self.dims.names() if self.dims is not None else ()), *self.bound]
        sizes = [(name, cast("Size | None", self.number(name))) for name in names]
        return [
            name
            for name, size in sizes
            if size is not None and wanted.names() and size.expr == wanted.expr
        ]

    def _binds(self, name: str) -> bool:
        declared = lookup(name)
        if declared is None or declared.per_call:
            return True
        return self.per_call and owner_of(name) not in MODELS


@dataclass(slots=True, kw_only=True)
class Binding:
    """Binds the names of the tensors that cross in one call."""

    where: str
    phase: str | None
    dims: Dims
    has_dims: bool
    recorder: Recorder
    bound: dict[str, Size] = field(default_factory=dict[str, Size])
    binders: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])

    def names(self) -> Names:
        """What is known by now."""
        return Names(
            where=self.where,
            phase=self.phase,
            dims=self.dims,
            bound=cast("Mapping[str, int]", self.bound),
            binders=self.binders,
            recorder=self.recorder,
            per_call=not self.has_dims,
        )

    def _unknown(self, axis: Axis) -> set[str]:
        names = self.names()
        return {name for name in axis.symbols() if names.number(name) is None}

    def order(self, tensors: Sequence[Held]) -> Iterator[Held]:
        """Tensors whose plain axes bind names first, then those that need a name solved."""
        postponed: list[Held] = []
        for held in tensors:
            axes = cast(TensorSpec, held.spec).shape.axes
            plain = {name for axis in axes if (name := axis.as_symbol()) is not None}
            if all(self._unknown(axis) <= plain for axis in axes):
                yield held
            else:
                postponed.append(held)
        yield from postponed

    def bind(self, axes: Sequence[Axis], shape: Sequence[Size], path: str) -> None:
        """The names of these axes that have no size yet get the one that the tensor has."""
        for axis, size in zip(axes, shape, strict=True):
            name = axis.as_symbol()
            if name is not None and self._unknown(axis):
                self._assign(name, size, path)
        for axis, size in zip(axes, shape, strict=True):
            unknown = self._unknown(axis)
            if len(unknown) == 1 and axis.as_symbol() is None:
                (name,) = unknown
                solved = self._solve(axis, name, size)
                if solved is not None:
                    self._assign(name, solved, path)

    def _solve(self, axis: Axis, unknown: str, size: Size) -> Size | None:
        """The unknown of `axis == size`, where it occurs once in each of its terms."""
        names, factor, rest = self.names(), Size(expression(0), self.recorder), size
        for monomial, coefficient in axis.terms:
            term = Size(expression(coefficient), self.recorder)
            for name in monomial:
                if name != unknown:
                    term = term * cast(Size, names.number(name))
            if unknown not in monomial:
                rest = rest - term
            elif monomial.count(unknown) == 1:
                factor = factor + term
            else:
                return None
        return rest.over(factor)

    def _assign(self, name: str, size: Size, path: str) -> None:
        self.bound[name] = size
        self.binders.setdefault(name, []).append(path)
