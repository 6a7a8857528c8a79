"""A contract under trace: every axis is held to what its annotation says, as an expression.

The finding is that of run time: code, field, named dimension, both owners and origins. The numbers
may be equal; the names are what is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import torch

from shapecheck.diagnostics import Diagnostic, Note
from shapecheck.errors import ShapeContractError
from shapecheck.runtime.opened import tensor_in
from shapecheck.runtime.reach import Reach
from shapecheck.runtime.report import Reporter, Site
from shapecheck.runtime.stats import Tally
from shapecheck.runtime.tensors import Facts
from shapecheck.runtime.violation import differences, mismatch
from shapecheck.spec import (
    CarrierSpec,
    HintSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
    absent_tensor,
    alternative,
    carrier_of,
)
from shapecheck.symbolic.binding import Binding, Held, Names
from shapecheck.symbolic.bounds import Bounds
from shapecheck.symbolic.counted import Counted
from shapecheck.symbolic.domains import Domains
from shapecheck.symbolic.indices import Indices
from shapecheck.symbolic.recorder import Recorder
from shapecheck.symbolic.shape_env import expression
from shapecheck.symbolic.sizes import Size
from shapecheck.symbolic.stub import Stub


@dataclass(slots=True, kw_only=True)
class Boundary:
    """One call of a contract, or one check of a carrier: names bind to the first size seen."""

    binding: Binding
    recorder: Recorder
    domains: Domains
    indices: Indices
    bounds: Bounds
    place: Note | None = None
    _said: set[tuple[str, frozenset[str]]] = field(
        default_factory=set["tuple[str, frozenset[str]]"]
    )

    def check(self, values: Sequence[Held]) -> None:
        """Every tensor in `values` is as annotated, or a finding says what it is instead."""
        counted = Counted(
            recorder=self.recorder,
            domains=self.domains,
            indices=self.indices,
            bounds=self.bounds,
            report=self.report,
        )
        right = list(self._check(values))
        for held in right:  # every name is bound by now
            counted.judge(held, self.binding.names())

    def _check(self, values: Sequence[Held]) -> Iterator[Held]:
        """Yields the tensors that are as annotated, in those that may be absent too."""
        tensors: list[Held] = []
        later: list[Held] = []
        for held in values:
            self._open(held, tensors, later)
        for held in self.binding.order(tensors):
            if self._tensor(held):
                yield held
        for held in later:
            yield from self._later(held)

    def facts(self, tensor: torch.Tensor, *, named: bool = False) -> Facts:
        """Shape in sizes, dtype and device."""
        sizes = (Size(expression(size), self.recorder, named) for size in tensor.shape)
        shape = tuple(cast(int, size) for size in sizes)
        return Facts(shape, str(tensor.dtype).removeprefix("torch."), str(tensor.device))

    def apart(self, left: torch.Tensor, right: torch.Tensor) -> frozenset[str]:
        """The names by which the later axes of two tensors differ."""
        for one, other in zip(left.shape[1:], right.shape[1:], strict=False):
            sizes = (Size(expression(size), self.recorder) for size in (one, other))
            names = self._left(*sizes)
            if names:
                return names
        return frozenset()

    def report(
        self, diagnostic: Diagnostic, tensor: torch.Tensor | None, names: frozenset[str]
    ) -> None:
        """Keep a finding, once for a boundary and its names."""
        key = (diagnostic.code, names or frozenset({diagnostic.message}))
        if key not in self._said:
            self._said.add(key)
            if self.place is not None:
                # The place of the finding too, when no line of traced code called.
                notes = (*diagnostic.notes, self.place)
                diagnostic = replace(diagnostic, notes=notes, primary=self.place.span)
            self.recorder.cross(diagnostic, tensor, names)

    # -- opening -----------------------------------------------------------------------------

    def _open(self, held: Held, tensors: list[Held], later: list[Held]) -> None:
        value, path = held.value, held.path
        if isinstance(value, Stub):
            return
        match held.spec:
            case TensorSpec() as spec:
                if self._is_a(held, (spec.cls,), Site(path=path, spec=spec)):
                    tensors.append(held)
            case HintSpec():
                return  # a size that passes for an int is none
            case CarrierSpec(cls=cls):
                if self._is_a(held, (cls,), _named(path, cls)):
                    for part in self._fields(held, cls):
                        self._open(part, tensors, later)
            case TupleSpec(items=items):
                if self._is_a(held, (tuple,), _named(path, tuple)):
                    parts = cast("tuple[object, ...]", value)
                    if len(parts) != len(items):
                        self._refuse(held, Site(path=path, wanted=f"a tuple of {len(items)}"))
                        return
                    for index, (part, item) in enumerate(zip(parts, items, strict=True)):
                        self._open(Held(part, f"{path}[{index}]", item), tensors, later)
            case PhasedSpec() as spec:
                chosen = alternative(spec, path, self.binding.phase)
                others = tuple(
                    (phase, tensor)
                    for phase, item in spec.alternatives
                    if phase != self.binding.phase and (tensor := tensor_in(item)) is not None
                )
                self._open(replace(held, spec=chosen, alternatives=others), tensors, later)
            case OptionalSpec() | SequenceSpec() | UnionSpec():
                later.append(held)

    def _later(self, held: Held) -> Iterator[Held]:
        value, path = held.value, held.path
        match held.spec:
            case OptionalSpec(item=item) if value is not None:
                known = self.binding
                absent = absent_tensor(item, known.dims, known.phase) if known.has_dims else None
                if absent is None:
                    yield from self._check([replace(held, spec=item)])
                else:
                    self._refuse(held, Site(path=path, spec=absent), how="absent")
            case SequenceSpec(container=container, item=item):
                if self._is_a(held, (container,), _named(path, container)):
                    for index, part in enumerate(cast("Sequence[object]", value)):
                        one = Held(part, f"{path}[{index}]", item, held.alternatives)
                        yield from self._check([one])
            case UnionSpec(items=items):
                classes = tuple(item.cls for item in items)
                if self._is_a(held, classes, _named(path, *classes)):
                    chosen = next(item for item in items if isinstance(value, item.cls))
                    yield from self._check([replace(held, spec=chosen)])
            case _:
                return

    def _fields(self, held: Held, cls: type) -> list[Held]:
        parts: list[Held] = []
        for item in carrier_of(cls).fields:
            if not hasattr(held.value, item.name):
                self._refuse(held, Site(path=held.path, wanted=item.name), how="unset")
                return []
            value = cast(object, getattr(held.value, item.name))
            parts.append(Held(value, f"{held.path}.{item.name}", item.spec))
        return parts

    def _is_a(self, held: Held, classes: tuple[type, ...], site: Site) -> bool:
        if isinstance(held.value, classes):
            return True
        self._refuse(held, site)
        return False

    def _refuse(self, held: Held, site: Site, how: str = "value") -> None:
        """Report a value of another class, or one that should not be there, in run time's words."""
        reporter = _Reporter(
            where=self.binding.where,
            phase=self.binding.phase,
            dims=self.binding.dims,
            tally=Tally(self.binding.where),
            sites=[site],
            names=self.binding.names(),
        )
        judge = {"value": reporter.value, "absent": reporter.absent, "unset": reporter.unset}[how]
        try:
            judge(0, held.value, {}, ())
        except ShapeContractError as error:
            tensor = held.value if isinstance(held.value, torch.Tensor) else None
            self.report(error.diagnostic, tensor, frozenset())

    # -- tensors -----------------------------------------------------------------------------

    def _tensor(self, held: Held) -> bool:
        """Whether shape and dtype are as annotated."""
        spec, tensor = cast(TensorSpec, held.spec), cast(torch.Tensor, held.value)
        facts = self.facts(tensor)
        if len(facts.shape) == len(spec.shape.axes):
            self.binding.bind(spec.shape.axes, cast("tuple[Size, ...]", facts.shape), held.path)
        names = self.binding.names()
        if self.recorder.names(tensor):
            self.recorder.evidence.crossings += 1
        wrong = differences(names, spec, facts)
        if wrong:
            self._mismatch(held, spec, facts, tensor, [one for one in wrong if type(one) is int])
        return not wrong

    def _mismatch(
        self, held: Held, spec: TensorSpec, facts: Facts, tensor: torch.Tensor, axes: list[int]
    ) -> None:
        names = self.binding.names()
        diagnostic = mismatch(names, held.path, spec, facts, held.alternatives)
        involved: frozenset[str] = frozenset()
        if axes:
            axis, found = spec.shape.axes[axes[0]], cast(Size, facts.shape[axes[0]])
            expected = names.value(axis)
            involved = found.names() | axis.symbols()
            if isinstance(expected, Size):
                involved = self._left(expected, found) or involved
                if expected.number == found.number:
                    note = Note(
                        message=f"in this run both are {found.number}: the names differ, which "
                        "only other numbers would show"
                    )
                    diagnostic = replace(diagnostic, notes=(*diagnostic.notes, note))
        self.report(diagnostic, tensor, involved)

    def _left(self, expected: Size, found: Size) -> frozenset[str]:
        """What remains of two sizes when all that is common to both is left out."""
        equation = self.recorder.judge.equation(expected.expr, found.expr)
        return equation.names if equation is not None else frozenset()


@dataclass(slots=True, eq=False, kw_only=True)
class _Reporter(Reporter):
    """Run time's reporter, with sizes for numbers."""

    names: Names

    def _reach(self, bound: Mapping[str, object], path: str = "") -> Reach:
        return self.names


def _named(path: str, *classes: type) -> Site:
    return Site(
        path=path,
        wanted=" or ".join(cls.__qualname__.rpartition("<locals>.")[2] for cls in classes),
    )
