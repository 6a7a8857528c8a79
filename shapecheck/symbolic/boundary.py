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
from shapecheck.dims.model import Dims
from shapecheck.dims.parse import Axis
from shapecheck.dims.vocabulary import lookup
from shapecheck.errors import ShapeContractError
from shapecheck.runtime.opened import tensor_in
from shapecheck.runtime.reach import MODELS, Reach, owner_of
from shapecheck.runtime.report import Reporter, Site
from shapecheck.runtime.stats import Tally
from shapecheck.runtime.tensors import Facts
from shapecheck.runtime.violation import differences, finding, mismatch
from shapecheck.spec import (
    CarrierSpec,
    HintSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
    absent_tensor,
    alternative,
    carrier_of,
)
from shapecheck.symbolic.bounds import Bounds
from shapecheck.symbolic.domains import Domains, Ids
from shapecheck.symbolic.indices import Index, Indices
from shapecheck.symbolic.recorder import Recorder
from shapecheck.symbolic.shape_env import expression
from shapecheck.symbolic.sizes import Size
from shapecheck.symbolic.stub import Stub


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
        size = self.dims.get(name)
        return None if size is None else cast(int, Size(expression(size), self.recorder))

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
class Boundary:
    """One call of a contract, or one check of a carrier: names bind to the first size seen."""

    where: str
    phase: str | None
    dims: Dims
    has_dims: bool
    recorder: Recorder
    domains: Domains
    indices: Indices
    bounds: Bounds
    place: Note | None = None
    bound: dict[str, Size] = field(default_factory=dict[str, Size])
    binders: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    _said: set[tuple[str, frozenset[str]]] = field(
        default_factory=set["tuple[str, frozenset[str]]"]
    )

    def check(self, values: Sequence[Held]) -> None:
        """Every tensor in `values` is as annotated, or a finding says what it is instead."""
        tensors: list[Held] = []
        later: list[Held] = []
        for held in values:
            self._open(held, tensors, later)
        right = [held for held in self._binding_order(tensors) if self._tensor(held)]
        for held in right:  # every name is bound by now
            self._values(held)
        for held in later:
            self._later(held)

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
            notes = diagnostic.notes + ((self.place,) if self.place is not None else ())
            self.recorder.cross(replace(diagnostic, notes=notes), tensor, names)

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
                chosen = alternative(spec, path, self.phase)
                others = tuple(
                    (phase, tensor)
                    for phase, item in spec.alternatives
                    if phase != self.phase and (tensor := tensor_in(item)) is not None
                )
                self._open(replace(held, spec=chosen, alternatives=others), tensors, later)
            case OptionalSpec() | SequenceSpec() | UnionSpec():
                later.append(held)

    def _later(self, held: Held) -> None:
        value, path = held.value, held.path
        match held.spec:
            case OptionalSpec(item=item) if value is not None:
                tensor = absent_tensor(item, self.dims, self.phase) if self.has_dims else None
                if tensor is None:
                    self.check([replace(held, spec=item)])
                else:
                    self._refuse(held, Site(path=path, spec=tensor), how="absent")
            case SequenceSpec(container=container, item=item):
                if self._is_a(held, (container,), _named(path, container)):
                    for index, part in enumerate(cast("Sequence[object]", value)):
                        self.check([Held(part, f"{path}[{index}]", item, held.alternatives)])
            case UnionSpec(items=items):
                classes = tuple(item.cls for item in items)
                if self._is_a(held, classes, _named(path, *classes)):
                    chosen = next(item for item in items if isinstance(value, item.cls))
                    self.check([replace(held, spec=chosen)])
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
            where=self.where,
            phase=self.phase,
            dims=self.dims,
            tally=Tally(self.where),
            sites=[site],
            names=self._names(),
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
            self._bind(spec.shape.axes, cast("tuple[Size, ...]", facts.shape), held.path)
        names = self._names()
        if self.recorder.names(tensor):
            self.recorder.evidence.crossings += 1
        wrong = differences(names, spec, facts)
        if wrong:
            self._mismatch(held, spec, facts, tensor, [one for one in wrong if type(one) is int])
        return not wrong

    def _values(self, held: Held) -> None:
        spec, tensor = cast(TensorSpec, held.spec), cast(torch.Tensor, held.value)
        if spec.indexes is None:
            return
        if spec.ids_of is not None:
            self._ids(held, spec.ids_of, tensor)
        if not any(expression(size) == 0 for size in tensor.shape):
            self._index(held, spec, spec.indexes, tensor)

    def _mismatch(
        self, held: Held, spec: TensorSpec, facts: Facts, tensor: torch.Tensor, axes: list[int]
    ) -> None:
        names = self._names()
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

    def _ids(self, held: Held, model: str, tensor: torch.Tensor) -> None:
        wanted, tag = f"{model}_vocab", self.domains.of(tensor)
        if tag is None:
            self.domains.tag(tensor, Ids(wanted))
            return
        if isinstance(tag, Ids) and not self.domains.conflict(tag.name, wanted):
            return
        names = self._names()
        diagnostic = finding(
            "SHP305",
            names,
            held.path,
            f"ids of {wanted} belong here, got {tag}",
            [
                f"{wanted} comes from {names.origin(wanted)}",
                "map ids between the vocabularies where they change hands",
            ],
        )
        found = frozenset({tag.name}) if isinstance(tag, Ids) else frozenset[str]()
        self.report(diagnostic, tensor, found | {wanted})

    def _index(self, held: Held, spec: TensorSpec, axis: Axis, tensor: torch.Tensor) -> None:
        """The values are not known to count along another axis, nor to reach beyond this one."""
        names = self._names()
        size = names.value(axis)
        if size is None:
            return
        where = f"{held.path} of {self.where}"
        wanted = Index(axis, size.expr if isinstance(size, Size) else expression(size), where)
        other = self.indices.another(wanted, tensor, self.domains)
        if other is not None:
            self._refuse_index(held, wanted, f"got {other}", tensor, other)
            return
        if self.indices.of(tensor) is None:
            self.indices.mark(tensor, wanted)
        beyond = self.bounds.beyond(tensor, wanted.size, pad=spec.pad)
        if beyond is not None:
            reached, said = beyond
            text = self.recorder.judge.text(reached)
            batch = f" in a batch{said}" if said else ""
            self._refuse_index(held, wanted, f"got an index that reaches {text}{batch}", tensor)

    def _refuse_index(
        self,
        held: Held,
        wanted: Index,
        got: str,
        tensor: torch.Tensor,
        found: Index | Ids | None = None,
    ) -> None:
        names = self._names()
        notes = [f"{name} comes from {names.origin(name)}" for name in sorted(wanted.names())]
        if isinstance(found, Index):
            notes.append(f"{found} since {found.where}")
        notes.append("hand over what counts along this axis, or allow the equality with its reason")
        diagnostic = finding("SHP307", names, held.path, f"{wanted} belong here, {got}", notes)
        met = frozenset({found.name}) if isinstance(found, Ids) else frozenset[str]()
        met |= found.names() if isinstance(found, Index) else met
        self.report(diagnostic, tensor, wanted.names() | met)

    # -- names -------------------------------------------------------------------------------

    def _names(self) -> Names:
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
        names = self._names()
        return {name for name in axis.symbols() if names.number(name) is None}

    def _binding_order(self, tensors: Sequence[Held]) -> Iterator[Held]:
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

    def _bind(self, axes: Sequence[Axis], shape: Sequence[Size], path: str) -> None:
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
        names, factor, rest = self._names(), Size(expression(0), self.recorder), size
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
