"""What every object of a class has, whoever made it: what its constructor says whose it is."""

from __future__ import annotations

import ast

from shapecheck.static.frames import Frame
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.symbols import owners_of
from shapecheck.static.values import Axis, Layer, ObjectRef, Size, Tensor, Value
from shapecheck.static.walk import walk, walk_statements


def made_with(frame: Frame, ref: ObjectRef, attribute: str) -> Value | None:
    """What an object from outside has in a field that only the constructor of its class fills."""
    project, machine = frame.machine.project, frame.machine
    if not ref.entry or ref.cls is None:
        return None
    order = project.mro(ref.cls)
    stored = [one.stores[attribute] for one in order if attribute in one.stores]
    if not stored or any(names != ["__init__"] for names in stored):
        return None
    value = machine.cell(machine.self_ref(ref.cls), attribute)
    if value is None or not _is_owned(value):
        return None
    inits = [one.methods["__init__"] for one in order if "__init__" in one.methods]
    return None if any(_asks_itself(frame, ref.cls, one) for one in inits) else value


def _is_owned(value: Value) -> bool:
    axes: tuple[Axis, ...] = ()
    if isinstance(value, Size):
        axes = (value,)
    elif isinstance(value, Tensor):
        axes = value.dims or (value.last,)
    elif isinstance(value, Layer):
        axes = value.takes, value.gives
    return any(axis is not None and owners_of(axis.poly) - {""} for axis in axes)


def _asks_itself(frame: Frame, cls: ClassFacts, init: FunctionFacts) -> bool:
    """Whether the constructor uses what a method returns: a class below may answer anew."""
    arguments = [*init.node.args.posonlyargs, *init.node.args.args]
    own = arguments[0].arg if arguments else ""
    called = {
        id(statement.value.func)
        for statement in walk_statements(init.node.body)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    }
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == own
        and id(node) not in called
        and frame.machine.project.method(cls, node.attr) is not None
        for node in walk(init.node)
    )
