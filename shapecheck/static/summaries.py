"""Calls that are remembered: what a function that reads no object returns for what it is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shapecheck.diagnostics.model import Span
from shapecheck.static.frames import Frame
from shapecheck.static.index import FunctionFacts
from shapecheck.static.machine import MAX_DEPTH
from shapecheck.static.symbols import owners_of
from shapecheck.static.units import Basis, UnitKey
from shapecheck.static.values import (
    Axis,
    FunctionValue,
    Instance,
    Items,
    Layer,
    Mapping,
    Partial,
    Sequence,
    Shape,
    Size,
    Tensor,
    Union,
    Value,
)

SummaryKey = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result of a call, what it rests on, and what it cost.

    `followed` are the functions that it went through, `height` how deep; `witness` is the unit
    that was at work, where that saw something in it.
    """

    result: Value
    basis: Basis
    cost: int
    height: int
    followed: frozenset[FunctionFacts]
    witness: UnitKey | None

    def holds_for(self, frame: Frame) -> bool:
        """Whether a call from here would come as far, and go the same way."""
        return frame.depth + self.height <= MAX_DEPTH and self.followed.isdisjoint(frame.stack)


def recalled(frame: Frame, key: SummaryKey | None) -> Summary | None:
    """What is remembered of a call and holds here; what it rests on, whoever asks rests on too."""
    machine = frame.machine
    known = machine.summaries.get(key) if key is not None else None
    if known is None or not known.holds_for(frame):
        return None
    machine.basis.add(known.basis)
    if known.witness is not None and known.witness != machine.unit:
        machine.basis.add(known.witness)
    machine.reach.add(frame.depth + known.height, known.followed)
    return known


def summary_key(
    function: FunctionFacts, receiver: Value | None, env: dict[str, Value]
) -> SummaryKey | None:
    """What decides the result of a function that reads no object, and the way of its sizes.

    None when it may read one.
    """
    if isinstance(receiver, Instance):
        return None
    values = tuple(env.values())
    if any(map(holds_object, values)):
        return None
    return (function, *values, *(span for value in values for span in _ways(value)))


def _ways(value: Value) -> Iterable[Span]:
    """The way that the sizes of either model came: the result has come it as well."""
    if isinstance(value, Union):
        for choice in value.alternatives:
            yield from _ways(choice.value)
    elif isinstance(value, Sequence):
        for item in value.items:
            yield from _ways(item)
    elif isinstance(value, (Items, Mapping)):
        for choice in value.choices:
            yield from _ways(choice)
    elif isinstance(value, Shape):
        yield from _ways(value.tensor)
    else:
        for axis in _axes(value):
            if axis is not None and axis.trail and owners_of(axis.poly) - {""}:
                yield from (step.span for step in axis.trail)


def _axes(value: Value) -> tuple[Axis, ...]:
    if isinstance(value, Size):
        return (value,)
    if isinstance(value, Tensor):
        return value.dims or (value.last,)
    return (value.takes, value.gives) if isinstance(value, Layer) else ()


def holds_object(value: Value) -> bool:
    """Whether a value leads to an object, or to a dict or a function that may hold one."""
    if isinstance(value, Union):
        return any(holds_object(choice.value) for choice in value.alternatives)
    if isinstance(value, (Sequence, Items)):
        parts = value.items if isinstance(value, Sequence) else value.choices
        return any(map(holds_object, parts))
    return isinstance(value, (Instance, FunctionValue, Mapping, Partial))
