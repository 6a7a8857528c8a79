"""Assume and guarantee: what is promised is read as said, and held against what is put there."""

from __future__ import annotations

import ast

from shapecheck.static.contracts.promise import Promise
from shapecheck.static.facts import Handover
from shapecheck.static.frames import Frame
from shapecheck.static.index import FunctionFacts
from shapecheck.static.unions import lift, union
from shapecheck.static.values import (
    UNKNOWN,
    Alternative,
    Const,
    Instance,
    ObjectRef,
    Plain,
    Size,
    Tensor,
    Unknown,
    Value,
    alternatives,
)


def promised_field(frame: Frame, ref: ObjectRef, name: str) -> Value | None:
    """What a field holds because its class or a pack says so, or None."""
    if ref.cls is None:
        return None
    machine = frame.machine
    promise = machine.promises.of_field(machine.project, ref.cls, name)
    if promise is None:
        return None
    if promise.cases:
        return _assumed(frame, promise)
    known = ref.children.get(name)
    if known is None:
        known = _owned_object(frame, promise, f"{ref.cls.name}.{name}", name)
        ref.children[name] = known
    return known


def _owned_object(frame: Frame, promise: Promise, shown: str, name: str) -> Value:
    owned = promise.owned(promise.owner, shown)
    module = frame.module
    cls = frame.machine.project.class_of(module, promise.kind) if promise.kind else None
    return Instance(ObjectRef(cls, owned, None, True, name))


def _assumed(frame: Frame, promise: Promise) -> Value | None:
    values = promise.values(current_phase(frame))
    return union(Alternative(one) for value in values for one in _plain(value)) if values else None


def _plain(value: Value) -> list[Plain]:
    return [one.value for one in alternatives(value)]


def current_phase(frame: Frame) -> str:
    """The phase of the innermost function on the stack that states one."""
    promises = frame.machine.promises
    return next((phase for one in reversed(frame.stack) if (phase := promises.phase(one))), "")


def keep_field(frame: Frame, ref: ObjectRef, name: str, value: Value, node: ast.expr) -> Value:
    """The value as the field holds it; what breaks the promise is noted."""
    if ref.cls is None:
        return value
    machine = frame.machine
    promise = machine.promises.of_field(machine.project, ref.cls, name)
    return _kept(frame, promise, f"{ref.cls.name}.{name}", value, node)


def keep_parameter(
    frame: Frame, promise: Promise | None, cell: str, value: Value, node: ast.expr
) -> Value:
    """The argument as the function sees it; what breaks the promise is noted."""
    return _kept(frame, promise, cell, value, node)


def keep_result(frame: Frame, value: Value, node: ast.expr) -> Value:
    """The result as the caller sees it; what breaks the promise is noted."""
    function = frame.function
    if function is None:
        return value
    promise = frame.machine.promises.of_parameter(function, "return")
    return _kept(frame, promise, function.qualname, value, node)


def promised_parameter(frame: Frame, function: FunctionFacts, name: str) -> Value | None:
    """What a parameter holds because an annotation or a pack says so, or None."""
    promise = frame.machine.promises.of_parameter(function, name)
    if promise is None:
        return None
    if promise.cases:
        return _assumed(frame, promise)
    return _owned_object(frame, promise, name, name)


def promised_result(frame: Frame, function: FunctionFacts) -> Value | None:
    """The same for what a function returns when its body is not followed."""
    return promised_parameter(frame, function, "return")


def _kept(frame: Frame, promise: Promise | None, cell: str, value: Value, node: ast.expr) -> Value:
    if promise is None:
        return value
    if promise.cases:
        return _held_against(frame, promise, cell, value, node)
    owned = promise.owned(promise.owner, cell)

    def own(plain: Plain) -> Value:
        if isinstance(plain, Unknown):
            return Unknown(owned)
        if isinstance(plain, Instance) and plain.ref.owned is None:
            plain.ref.owned = owned
        return plain

    return lift(own, value)


def _held_against(frame: Frame, promise: Promise, cell: str, value: Value, node: ast.expr) -> Value:
    span = frame.module.span(node)
    phase = current_phase(frame)
    for choice in alternatives(value):
        if isinstance(choice.value, (Tensor, Size, Const)) and choice.value != Const(None):
            frame.machine.facts.handovers.setdefault(
                (cell, span, phase, choice.value),
                Handover(
                    cell=cell,
                    given=choice.value,
                    promise=promise,
                    phase=phase,
                    guards=(*frame.guards, *choice.guards),
                    span=span,
                    where=frame.where,
                ),
            )
    assumed = _assumed(frame, promise)
    if assumed is None:
        return value
    return lift(lambda plain: assumed if _says_nothing(plain) else plain, value)


def _says_nothing(plain: Plain) -> bool:
    if isinstance(plain, Tensor):
        return plain.dims is None and plain.last is None
    return plain == UNKNOWN
