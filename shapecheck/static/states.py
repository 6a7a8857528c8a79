"""What the fields of the objects held at the end of a run, as bytes that a later run can ask.

An edit of some bodies leaves nearly every field as it was. With its values at hand, only the units
that rest on those bodies are interpreted, and none of the many whose fields they read.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shapecheck.diagnostics.model import Span
from shapecheck.static.codec import encode
from shapecheck.static.edits import Edit
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.machine import Machine
from shapecheck.static.symbols import Ownership
from shapecheck.static.units import Body, Giver, UnitKey, resting
from shapecheck.static.values import FunctionValue, ObjectRef, Value

Named = tuple[str, str]  # a class: its module, its name
Move = tuple[str, int, int, int]  # a path, the first and the last line edited, how far others went
Rests = frozenset[Body | UnitKey]  # what one that gave a field something rests on
Part = tuple[Rests, bytes]  # what one of several gave
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

    `maker` is what it rests on that it was made, where its constructor waited.
    """

    cls: Named | None
    owned: Ownership | None
    site: Span | None
    entry: bool
    label: str
    maker: Rests | None
    fields: dict[str, Field]


class _Unkept(Exception):
    """A value that holds what only this run knows: a closure, a class inside a function."""


def state_of(machine: Machine) -> FieldState:
    """The fields of every object that the fields of a class lead to."""
    numbers: dict[ObjectRef, int] = {}
    waiting: list[ObjectRef] = []

    def number(ref: ObjectRef) -> int:
        if ref not in numbers:
            if ref.cls is not None:
                class_name(ref.cls)
            numbers[ref] = len(numbers)
            waiting.append(ref)
        return numbers[ref]

    known: dict[Giver | None, Rests] = {}
    same: dict[Rests, Rests] = {}  # many givers rest on the same

    def rests(giver: Giver | None) -> Rests:
        if giver not in known:
            found = resting(giver)
            known[giver] = same.setdefault(found, found)
        return known[giver]

    texts: dict[int, bytes] = {}  # by identity: most fields hold one of a few values

    def written(value: Value) -> bytes:
        if id(value) not in texts:
            texts[id(value)] = dumped(value)
        return texts[id(value)]

    def dumped(value: Value) -> bytes:
        stream = io.BytesIO()
        try:
            _Writer(stream, number).dump(value)
        except (_Unkept, RecursionError, pickle.PicklingError):
            return b""
        return stream.getvalue()

    def parts(ref: ObjectRef, name: str) -> tuple[Part, ...]:
        given = ref.givers.get(name)
        if isinstance(given, dict):
            each = ((giver, part) for giver, part in given.items() if part is not None)
            return tuple((rests(giver), written(part)) for giver, part in each)
        return () if given is None else ((rests(given), b""),)

    selves: dict[Named, int] = {}
    for cls, ref in machine.selves.items():
        if _is_named(cls):
            selves[class_name(cls)] = number(ref)
    objects: list[Kept] = []
    for ref in waiting:  # grows meanwhile
        fields: dict[str, Field] = {}
        for name, value in ref.settled.items():
            fields[name] = parts(ref, name), written(value)
        cls = class_name(ref.cls) if ref.cls is not None else None
        maker = None if ref.birth is None else rests(ref.birth.maker)
        objects.append(Kept(cls, ref.owned, ref.site, ref.entry, ref.label, maker, fields))
    data = encode((tuple(machine.bases), selves, objects))
    return FieldState(data=zlib.compress(data, 1))


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
