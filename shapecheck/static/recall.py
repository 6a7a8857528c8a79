"""Fields as an earlier run left them, read when they are asked for."""

from __future__ import annotations

import gzip
import io
import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import cast

from shapecheck.diagnostics.model import Span
from shapecheck.static.codec import FACTS, CodecError, read
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.machine import Machine
from shapecheck.static.states import End, FieldState, Kept, Named, Rests, refer
from shapecheck.static.symbols import Ownership
from shapecheck.static.unions import join
from shapecheck.static.units import Birth, Giver, UnitKey, is_inside
from shapecheck.static.values import (
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Items,
    Layer,
    Mapping,
    ModuleValue,
    ObjectRef,
    Partial,
    Sequence,
    Shape,
    Value,
)

_HOLDERS = (ClassValue, External, FunctionValue, Instance, Items, Layer, Mapping, ModuleValue)
_CLASSES = (*FACTS, *_HOLDERS, Partial, Sequence, Shape)
_REFER = refer.__module__, refer.__name__
_BY_NAME = {(one.__module__, one.__name__): one for one in _CLASSES}


class RecallError(Exception):
    """A field that the earlier run cannot tell: everything has to be interpreted again."""


@dataclass(eq=False, slots=True)
class Recalled:
    """The objects of an earlier run, each made when it is first asked for."""

    machine: Machine
    state: FieldState
    objects: list[Kept]
    selves: dict[Named, int]
    rests: tuple[Rests, ...]
    stale: frozenset[int]
    made: dict[int, ObjectRef] = field(default_factory=dict[int, ObjectRef])
    bases: dict[tuple[ObjectRef, str], list[Rests]] = field(
        default_factory=dict[tuple[ObjectRef, str], list[Rests]]
    )

    def self_ref(self, cls: ClassFacts) -> ObjectRef | None:
        """The object that stood for every instance of a class, if there was one."""
        number = self.selves.get((cls.module.name, cls.name))
        if number is None or cls.module.bindings.get(cls.name) is not cls:
            return None
        return self.ref(number)

    def ref(self, number: int) -> ObjectRef:
        """An object by its number."""
        ref = self.made.get(number)
        if ref is None:
            kept = self.objects[number]
            if _is_dead(kept, self.stale, self.rests):
                raise RecallError("an object is made anew")
            cls = self.class_of(kept.cls) if kept.cls is not None else None
            site = kept.site and self.moved(kept.site)
            owned = kept.owned
            if owned is not None and owned.span is not None:
                owned = Ownership(owned.owner, owned.reason, self.moved(owned.span))
            ref = ObjectRef(cls, owned, site, kept.entry, kept.label)
            ref.recall = lambda name: self._fill(ref, kept, name)
            self.made[number] = ref
        return ref

    def _fill(self, ref: ObjectRef, kept: Kept, name: str) -> None:
        """Read one field into its cell; what is interpreted rests on those that gave it."""
        if name not in kept.fields:
            self.machine.basis.update(self.bases.get((ref, name), ()))
            return
        parts, data = kept.fields.pop(name)
        fresh = [number not in self.stale for number, _ in parts]
        bases = [
            self.rests[number] for (number, _), holds in zip(parts, fresh, strict=True) if holds
        ]
        self.bases[ref, name] = bases
        self.machine.basis.update(bases)
        if all(fresh):
            ref.settled[name] = _Reader(data, self).value()
            return
        # In the order of the earlier run, so that what is given anew takes its place again.
        givers: dict[Giver, Value | None] = {}
        for (number, part), holds in zip(parts, fresh, strict=True):
            if holds:
                givers[Birth()] = _Reader(part, self).value()
            elif unit := _unit(self.rests[number]):
                givers[unit] = None
        ref.givers[name] = givers
        self.machine.renewed.add((ref, name))
        given = list(filter(None, givers.values()))
        if given:
            ref.settled[name] = reduce(join, given)

    def moved(self, span: Span) -> Span:
        """Where a place of the earlier run is now."""
        line = span.line
        for path, first, last, distance in self.state.moves:
            if path == span.path and line >= first:
                if line <= last:
                    raise RecallError("a place is gone")
                line += distance
        return span if line == span.line else Span(path=span.path, line=line, column=span.column)

    def class_of(self, named: Named) -> ClassFacts:
        """A class by its module and name."""
        found = self._bound(*named)
        if not isinstance(found, ClassFacts):
            raise RecallError("a class is gone")
        return found

    def function_of(self, module: str, cls: str, name: str) -> FunctionFacts:
        """A function or a method by its names."""
        found = self.class_of((module, cls)).methods.get(name) if cls else self._bound(module, name)
        if not isinstance(found, FunctionFacts):
            raise RecallError("a function is gone")
        return found

    def _bound(self, module: str, name: str) -> object:
        facts = self.machine.project.module(module)
        return None if facts is None else self.machine.project.bound(facts, name)


def recall(machine: Machine, state: FieldState) -> None:
    """Let a machine know what the units left that are not stale; CodecError if it is damaged."""
    objects, end = _read(state.data)
    bodies = {body for rests in end.rests for body in rests}
    changed = frozenset(one for one in state.stale if len(one) == 2)
    stale = state.stale | {one for one in bodies if is_inside(one, changed)}
    numbers = _numbers(end.rests, stale)
    # Who made an object that its constructor would now make differently makes it again.
    while makers := {
        unit
        for one in objects
        if one.maker is not None and _is_dead(one, numbers, end.rests)
        if (unit := _unit(end.rests[one.maker])) and unit not in stale
    }:
        stale |= makers
        numbers = _numbers(end.rests, stale)
    machine.recalled = Recalled(machine, state, objects, end.selves, end.rests, numbers)
    machine.known = frozenset(end.units) - stale


def _read(data: bytes) -> tuple[list[Kept], End]:
    try:
        stream = io.BytesIO(gzip.decompress(data))
    except (OSError, EOFError, zlib.error) as error:
        raise CodecError(str(error)) from error
    objects: list[Kept] = []
    while not isinstance(one := read(stream, (*FACTS, Kept, End)), End):
        objects.append(cast("Kept", one))
    return objects, one


def _numbers(all_: tuple[Rests, ...], stale: Rests) -> frozenset[int]:
    """The numbers of those that rest on something stale."""
    return frozenset(number for number, rests in enumerate(all_) if not stale.isdisjoint(rests))


def _is_dead(kept: Kept, stale: frozenset[int], rests: tuple[Rests, ...]) -> bool:
    """Whether an object is made otherwise now, or its constructor gives it something else."""
    if kept.maker is None:
        return False
    numbers = (number for parts, _ in kept.fields.values() for number, _ in parts)
    return kept.maker in stale or any(one in stale and len(rests[one]) > 1 for one in numbers)


def _unit(rests: Rests) -> UnitKey | None:
    """The one unit that made an object or gave a field something, if it was no constructor."""
    only = list(rests)
    return only[0] if len(only) == 1 and len(only[0]) == 3 else None


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, recalled: Recalled) -> None:
        super().__init__(io.BytesIO(data))
        self._recalled = recalled

    def value(self) -> Value:
        """The value that the bytes hold; RecallError when they are damaged."""
        try:
            return cast("Value", self.load())
        except RecallError:
            raise
        except Exception as error:  # as in `decode`
            raise RecallError(str(error)) from error

    def _found(self, *parts: object) -> object:
        match parts:
            case ("object", int(number)):
                return self._recalled.ref(number)
            case ("class", str(module), str(name)):
                return self._recalled.class_of((module, name))
            case ("place", str(path), int(line), int(column)):
                return self._recalled.moved(Span(path=path, line=line, column=column))
            case ("function", str(module), str(cls), str(name)):
                return self._recalled.function_of(module, cls, name)
            case _:
                raise CodecError("an unknown reference")

    def find_class(self, module_name: str, global_name: str) -> Callable[..., object]:
        if (module_name, global_name) == _REFER:
            return self._found
        known = _BY_NAME.get((module_name, global_name))
        if known is None:
            raise CodecError(f"{module_name}.{global_name} is no value")
        return known
