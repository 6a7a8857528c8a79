"""Writes the checks of one direction of a contract as straight Python lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from shapecheck.dims.parse import Axis
from shapecheck.errors import ContractTextError
from shapecheck.runtime.guard import guard
from shapecheck.runtime.numbers import Numbers, expression, solve, variable
from shapecheck.runtime.opened import Opened, Value, as_tensor, tensor_in
from shapecheck.runtime.readings import Readings
from shapecheck.runtime.report import Reporter, Site, shown
from shapecheck.runtime.tensors import dtype_names
from shapecheck.runtime.text import Text
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
from shapecheck.spec.carrier import CarrierContract


@dataclass(slots=True, eq=False)
class Emitter:
    """Writes checks into `text`, and keeps book of the names they bind in `numbers`."""

    text: Text
    reporter: Reporter
    numbers: Numbers
    phase: str | None
    values: bool
    loops: list[str] = field(default_factory=list[str])

    def check(self, values: Sequence[Value]) -> None:
        """Emit every check of `values`; what reads data comes when every name is bound."""
        readings = Readings(self.text, len(self.text.lines), self.text.conditional)
        self._check(values, readings)
        readings.emit(self.numbers, self.fail)

    def _check(self, values: Sequence[Value], readings: Readings) -> None:
        """Classes, hints, tensors, then what may be absent."""
        opened = Opened()
        for value in values:
            self._open(value, opened)
        self._guard(opened.hints)
        for tensor in self._binding_order(opened.tensors):
            self._tensor(tensor)
        if self.values:
            self._read(opened, readings)
        for value in opened.later:
            self._later(value, readings)

    def fail(self, how: str, *arguments: object, at: str | None = None) -> str:
        """The call that judges a value, told the names bound so far and the loop indices."""
        bound = ", ".join(f"{name!r}: {variable(name)}" for name in self.numbers.known())
        at = f"({self._at()})" if at is None else at
        return f"_sc_{how}({', '.join(map(str, arguments))}, {{{bound}}}, {at})"

    def _at(self) -> str:
        return "".join(f"{index}, " for index in self.loops)

    def _open(self, value: Value, opened: Opened) -> None:
        code, path = value.code, value.path
        match value.spec:
            case TensorSpec() as spec:
                self._refuse_absent(value, spec)
                opened.tensors.append(value)
            case HintSpec(hint=hint) if hint is type(None) or hint is None:
                site = self.reporter.site(Site(path=path, wanted="None"))
                self.text.line(f"if {code} is not None: {self.fail('value', site, code)}")
            case HintSpec():
                opened.hints.append(value)
            case CarrierSpec(cls=cls):
                contract = carrier_of(cls)
                self._class(code, path, (cls,))
                opened.carriers.append((value, contract))
                for part in self._fields(value, contract):
                    self._open(part, opened)
            case TupleSpec(items=items):
                self._class(code, path, (tuple,))
                site = self.reporter.site(Site(path=path, wanted=f"a tuple of {len(items)}"))
                self.text.line(
                    f"if _sc_len({code}) != {len(items)}: {self.fail('value', site, code)}"
                )
                for position, item in enumerate(items):
                    name = self.text.fresh("f")
                    self.text.line(f"{name} = {code}[{position}]")
                    self._open(Value(name, f"{path}[{position}]", item), opened)
            case PhasedSpec():
                chosen = alternative(value.spec, path, self.phase)
                others = tuple(
                    (phase, tensor)
                    for phase, item in value.spec.alternatives
                    if phase != self.phase and (tensor := tensor_in(item)) is not None
                )
                self._open(replace(value, spec=chosen, alternatives=others), opened)
            case OptionalSpec() | SequenceSpec() | UnionSpec():
                opened.later.append(value)

    def _fields(self, value: Value, contract: CarrierContract) -> list[Value]:
        """The fields of a carrier; one that was never set is a finding, also at level warn."""
        fields = [
            (item, Value(self.text.fresh("f"), f"{value.path}.{item.name}", item.spec))
            for item in contract.fields
        ]
        names = ", ".join(item.name for item, _ in fields)
        site = self.reporter.site(Site(path=value.path, wanted=names))
        with self.text.block("try:", conditional=False):
            for item, part in fields:
                self.text.line(f"{part.code} = {value.code}.{item.name}")
        self.text.line(f"except _sc_AttributeError: {self.fail('unset', site, value.code)}")
        return [part for _, part in fields]

    def _later(self, value: Value, readings: Readings) -> None:
        code, path = value.code, value.path
        match value.spec:
            case OptionalSpec(item=item):
                tensor = absent_tensor(item, self.numbers.dims, self.phase)
                if tensor is not None:
                    site = self.reporter.site(Site(path=path, spec=tensor))
                    self.text.line(f"if {code} is not None: {self.fail('absent', site, code)}")
                    return
                with self.text.block(f"if {code} is not None:"):
                    self._check([replace(value, spec=item)], readings)
            case SequenceSpec(container=container, item=item):
                self._class(code, path, (container,))
                index, element = self.text.fresh("i"), self.text.fresh("e")
                with self.text.block(f"for {index}, {element} in _sc_enumerate({code}):"):
                    self.loops.append(index)
                    part = Value(element, f"{path}[{{}}]", item, value.alternatives)
                    self._check([part], readings)
                    self.loops.pop()
            case UnionSpec(items=items):
                self._class(code, path, tuple(item.cls for item in items))
                word = "if"
                for item in items:
                    cls = self.text.constant("class", item.cls)
                    with self.text.block(f"{word} _sc_isinstance({code}, {cls}):"):
                        self._check([replace(value, spec=item)], readings)
                    word = "elif"
            case _:
                raise AssertionError(f"{value.spec} is checked at once")

    def _class(self, code: str, path: str, classes: tuple[type, ...]) -> None:
        wanted = " or ".join(cls.__qualname__.rpartition("<locals>.")[2] for cls in classes)
        site = self.reporter.site(Site(path=path, wanted=wanted))
        name = self.text.constant("class", classes[0] if len(classes) == 1 else classes)
        self.text.line(f"if not _sc_isinstance({code}, {name}): {self.fail('value', site, code)}")

    def _guard(self, hints: Sequence[Value]) -> None:
        if not hints:
            return
        specs = [value.spec for value in hints]
        types = [spec.hint for spec in specs if isinstance(spec, HintSpec)]
        sites = [
            self.reporter.site(Site(path=value.path, wanted=_hint_name(hint)))
            for value, hint in zip(hints, types, strict=True)
        ]

        def fail(parameter: str, value: object) -> Exception:
            return _Wrong(sites[int(parameter.rpartition("_")[2])], value)

        checked = guard(types, [shown(value.path) for value in hints], fail)
        if checked is None:
            return
        name = self.text.constant("guard", checked)
        wrong = self.text.fresh("w")
        self.text.namespace["_sc_Wrong"] = _Wrong
        self.text.line(f"try: {name}({', '.join(value.code for value in hints)})")
        failed = self.fail("value", f"{wrong}.site", f"{wrong}.value")
        self.text.line(f"except _sc_Wrong as {wrong}: {failed}")

    def _binding_order(self, tensors: Sequence[Value]) -> Iterator[Value]:
        """Tensors whose plain axes bind names first, then those that need a name solved."""
        postponed: list[Value] = []
        for value in tensors:
            spec = as_tensor(value.spec)
            plain = {name for axis in spec.shape.axes if (name := axis.as_symbol()) is not None}
            if self.numbers.unknown(spec.shape.axes) <= plain:
                yield value
            else:
                postponed.append(value)
        yield from postponed

    def _refuse_absent(self, value: Value, spec: TensorSpec) -> None:
        if absent_tensor(spec, self.numbers.dims, self.phase) is not None:
            raise ContractTextError(
                f"SHP101 contract-syntax: {self.reporter.where}: {shown(value.path)} is "
                f"[{spec.shape}], a width this pair does not have; annotate `| None`"
            )

    def _tensor(self, value: Value) -> None:
        spec, code = as_tensor(value.spec), value.code
        site = self.reporter.site(Site(path=value.path, spec=spec, alternatives=value.alternatives))
        cls = self.text.constant("tensor", spec.cls)
        self.text.line(
            f"if {code}.__class__ is not {cls} and not _sc_isinstance({code}, {cls}): "
            + self.fail("value", site, code)
        )
        axes = [self.numbers.rest(axis) for axis in spec.shape.axes]
        unknown = self.numbers.unknown(spec.shape.axes)
        shape = f"{code}.shape"
        if unknown:
            shape = self.text.fresh("s")
            self.text.line(f"{shape} = {code}.shape")
            self.text.line(f"if _sc_len({shape}) != {len(axes)}: {self.fail('tensor', site, code)}")
            self._bind(value, axes, shape, site)
        wanted = ", ".join(expression(axis) for axis in axes)
        tests = [f"{shape} != ({wanted}{',' if len(axes) == 1 else ''})"]
        tests += self._dtype(spec, code)
        self.text.line(f"if {' or '.join(tests)}: {self.fail('tensor', site, code)}")

    def _bind(self, value: Value, axes: Sequence[Axis], shape: str, site: int) -> None:
        for index, axis in enumerate(axes):
            name = axis.as_symbol()
            if name is not None and name not in self.numbers.bound:
                self._assign(name, f"{shape}[{index}]", value.path)
        for index, axis in enumerate(axes):
            if axis.as_symbol() is not None or not (unknown := self.numbers.unknown([axis])):
                continue
            solved = solve(axis, sorted(unknown))
            if solved is None:
                raise ContractTextError(
                    f"SHP101 contract-syntax: {self.reporter.where}: {shown(value.path)}: axis "
                    f"{axis} cannot be solved for {', '.join(sorted(unknown))}; give each an axis "
                    "of its own in a tensor that is always there"
                )
            factor, rest = solved
            quotient, left = self.text.fresh("q"), self.text.fresh("r")
            size = f"{shape}[{index}]" + (f" - ({expression(rest)})" if rest.terms else "")
            self.text.line(f"{quotient}, {left} = _sc_divmod({size}, {factor})")
            wrong = self.fail("tensor", site, value.code)
            self.text.line(f"if {left} or {quotient} < 0: {wrong}")
            self._assign(unknown.pop(), quotient, value.path)

    def _assign(self, name: str, number: str, path: str) -> None:
        numbers, held = self.numbers, variable(name)
        self.reporter.binders.setdefault(name, []).append(shown(path))
        if self.text.conditional or name in numbers.maybe:
            numbers.maybe.add(name)
            self.text.line(f"if {held} is None: {held} = {number}")
        else:
            self.text.line(f"{held} = {number}")
        if not self.text.conditional:
            numbers.bound.add(name)

    def _dtype(self, spec: TensorSpec, code: str) -> list[str]:
        import torch

        names = dtype_names(spec, self.numbers.dims)
        if names is None:
            return []
        found = [getattr(torch, name) for name in names if hasattr(torch, name)]
        if len(found) == 1:
            return [f"{code}.dtype is not {self.text.constant('dtype', found[0])}"]
        tests = [f"{code}.dtype not in {self.text.constant('dtypes', tuple(found))}"]
        if spec.dtype_of is not None:
            # No Dims in reach: the model's dtype is whatever the first such tensor has.
            key = f"{spec.dtype_of} dtype"
            name = variable(key)
            self.numbers.maybe.add(key)
            self.text.line(f"if {name} is None: {name} = {code}.dtype")
            tests.append(f"{code}.dtype is not {name}")
        return tests

    def _read(self, opened: Opened, readings: Readings) -> None:
        """Note what reads data: the range of ids and indices, and the invariants of carriers."""
        for value in opened.tensors:
            spec = as_tensor(value.spec)
            if spec.indexes is not None and self.numbers.has(spec.indexes):
                site = self.reporter.site(Site(path=value.path, spec=spec))
                held, axis = readings.hold(value.code, self._at()), self.numbers.rest(spec.indexes)
                readings.index(held, site, axis, spec.pad)
        for value, contract in opened.carriers:
            if not contract.invariants:
                continue
            held = readings.hold(value.code, self._at())
            for invariant in contract.invariants:
                site = self.reporter.site(Site(path=value.path, wanted=invariant.__name__))
                name = self.text.constant("invariant", invariant)
                readings.invariant(held, site, name)


class _Wrong(Exception):
    """Carries a value that beartype refused, and its site, to the reporter."""

    def __init__(self, site: int, value: object) -> None:
        super().__init__()
        self.site = site
        self.value = value


def _hint_name(hint: object) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint).replace("typing.", "")
