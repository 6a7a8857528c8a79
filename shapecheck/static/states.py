"""What the fields of the objects held at the end of a run, as bytes that a later run can ask.

An edit of some bodies leaves nearly every field as it was. With its values at hand, only the units
that rest on those bodies are interpreted, and none of the many whose fields they read.
"""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shapecheck.diagnostics.model import Span
from shapecheck.static.codec import write
from shapecheck.static.edits import Edit
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.machine import Machine
from shapecheck.static.symbols import Ownership
from shapecheck.static.units import Body, Giver, UnitKey, resting
from shapecheck.static.values import FunctionValue, ObjectRef, Value

Named = tuple[str, str]  # a class: its module, its name
Move = tuple[str, int, int, int]  # a path, the first and the last line edited, how far others went
Rests = frozenset[Body | UnitKey]  # what one that gave a field something rests on
Part = tuple[int, bytes]  # the number of what it rests on, and what this one of several gave
Field = tuple[tuple[Part, ...], bytes]  # those that gave it something, all that they gave


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldState:
    """The fields of one part of a run; `stale` are the bodies edited since, and what rests on them.

    `moves` tell where the lines that it speaks of have gone since.
    """

    data: bytes
    stale: Rests = frozenset()
    moves: tuple[Move, ...] = ()

    def after(self, edits: Mapping[str, Edit], touched: frozenset[UnitKey]) -> FieldState:
        """The state where these units were edited, or rest on what was."""
        moves = [(path, one.first, one.last, one.distance) for path, one in edits.items()]
        bodies = frozenset(body for one in edits.values() for body in one.bodies)
        return replace(self, stale=self.stale | touched | bodies, moves=(*self.moves, *moves))


@dataclass(eq=False, slots=True)
class Kept:
    """One object: what it is, and its fields.

    `maker` is the number of what it rests on that it was made, where its constructor waited.
    """

    cls: Named | None
    owned: Ownership | None
    site: Span | None
    entry: bool
    label: str
    maker: int | None
    fields: dict[str, Field]


@dataclass(eq=False, slots=True)
class End:
    """What stands behind the objects: the units of the run, the objects of classes, all rests."""

    units: tuple[UnitKey, ...]
    selves: dict[Named, int]
    rests: tuple[Rests, ...]


class _Unkept(Exception):
    """A value that holds what only this run knows: a closure, a class inside a function."""


def state_of(machine: Machine) -> FieldState:
    """The fields of every object that the fields of a class lead to."""
    snapshot = _Snapshot()
    for cls, ref in machine.selves.items():
        if _is_named(cls):
            snapshot.selves[class_name(cls)] = snapshot.number(ref)
    for ref in snapshot.found:  # grows meanwhile
        snapshot.add(ref)
    return FieldState(data=snapshot.finished(tuple(machine.bases)))


@dataclass(eq=False, slots=True)
class _Snapshot:
    """Objects written one after another, each when it is found, so that none is held as bytes.

    `rests` are numbered, since many givers rest on the same. `texts` are the bytes of values by
    identity, since most fields hold one of a few.
    """

    numbers: dict[ObjectRef, int] = field(default_factory=dict[ObjectRef, int])
    found: list[ObjectRef] = field(default_factory=list[ObjectRef])
    selves: dict[Named, int] = field(default_factory=dict[Named, int])
    givers: dict[Giver | None, int] = field(default_factory=dict["Giver | None", int])
    rests: dict[Rests, int] = field(default_factory=dict[Rests, int])
    texts: dict[int, bytes] = field(default_factory=dict[int, bytes])
    packed: io.BytesIO = field(default_factory=io.BytesIO)
    stream: gzip.GzipFile = field(init=False)

    def __post_init__(self) -> None:
        self.stream = gzip.GzipFile(fileobj=self.packed, mode="wb", compresslevel=1, mtime=0)

    def number(self, ref: ObjectRef) -> int:
        """The number by which others name an object; _Unkept for what no later run finds."""
        if ref not in self.numbers:
            if ref.cls is not None:
                class_name(ref.cls)
            self.numbers[ref] = len(self.numbers)
            self.found.append(ref)
        return self.numbers[ref]

    def add(self, ref: ObjectRef) -> None:
        """Write an object."""
        fields = {
            name: (self._parts(ref.givers.get(name)), self._written(value))
            for name, value in ref.settled.items()
        }
        cls = class_name(ref.cls) if ref.cls is not None else None
        maker = None if ref.birth is None else self._rests(ref.birth.maker)
        kept = Kept(cls, ref.owned, ref.site, ref.entry, ref.label, maker, fields)
        write(kept, self.stream)

    def finished(self, units: tuple[UnitKey, ...]) -> bytes:
        """All that was written, and what it refers to."""
        write(End(units, self.selves, tuple(self.rests)), self.stream)
        self.stream.close()
        return self.packed.getvalue()

    def _rests(self, giver: Giver | None) -> int:
        if giver not in self.givers:
            self.givers[giver] = self.rests.setdefault(resting(giver), len(self.rests))
        return self.givers[giver]

    def _parts(self, given: Giver | dict[Giver, Value | None] | None) -> tuple[Part, ...]:
        if isinstance(given, dict):
            each = ((giver, part) for giver, part in given.items() if part is not None)
            return tuple((self._rests(giver), self._written(part)) for giver, part in each)
        return () if given is None else ((self._rests(given), b""),)

    def _written(self, value: Value) -> bytes:
        if id(value) not in self.texts:
            self.texts[id(value)] = self._dumped(value)
        return self.texts[id(value)]

    def _dumped(self, value: Value) -> bytes:
        stream = io.BytesIO()
        try:
            _Writer(stream, self.number).dump(value)
        except (_Unkept, RecursionError, pickle.PicklingError):
            return b""
        return stream.getvalue()


def class_name(cls: ClassFacts) -> Named:
    """How a later run finds a class; _Unkept where it cannot."""
    if not _is_named(cls):
        raise _Unkept
    return cls.module.name, cls.name


def _is_named(cls: ClassFacts) -> bool:
    return cls.module.bindings.get(cls.name) is cls


class _Writer(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, number: Callable[[ObjectRef], int]) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._number = number

    def reducer_override(self, obj: object) -> Any:
        """What names this object to a later run; asked for what is no number, text or tuple."""
        if isinstance(obj, Span):
            return refer, ("place", obj.path, obj.line, obj.column)
        if isinstance(obj, ObjectRef):
            return refer, ("object", self._number(obj))
        if isinstance(obj, ClassFacts):
            return refer, ("class", *class_name(obj))
        if isinstance(obj, FunctionFacts):
            return refer, ("function", *_function_name(obj))
        if isinstance(obj, FunctionValue) and obj.scope is not None:
            raise _Unkept
        return NotImplemented


def refer(kind: str, *names: object) -> object:
    """What is written for an object that a later run finds by names: it puts itself here."""
    raise TypeError(f"{kind} {names} is only to be read by a later run")


def _function_name(function: FunctionFacts) -> tuple[str, str, str]:
    cls, name = function.cls, function.name
    if cls is None:
        if function.module.bindings.get(name) is not function:
            raise _Unkept
        return function.module.name, "", name
    if cls.methods.get(name) is not function:
        raise _Unkept
    return (*class_name(cls), name)
