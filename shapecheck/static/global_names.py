"""Global names: the value of what an import, a definition or an assignment of a module says."""

from __future__ import annotations

import ast

from shapecheck.static.frames import Frame, State
from shapecheck.static.heap import Heap
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.project import Resolved
from shapecheck.static.values import (
    UNKNOWN,
    ClassValue,
    External,
    FunctionValue,
    ModuleValue,
    Value,
)

_KNOWN = ast.Constant | ast.Name | ast.Dict | ast.Tuple | ast.List


def global_value(frame: Frame, name: str) -> Value:
    """The value of a name that is not local: of the module, or a builtin."""
    module, machine = frame.module, frame.machine
    key = module, name
    value = machine.names.get(key)
    if value is not None:
        return value
    if name not in module.bindings:
        found: Resolved = f"builtins.{name}"
    else:
        found = machine.project.resolve(module, name)
    value = resolved_value(frame, found, name)
    if not isinstance(found, tuple):  # what an expression says may still be unknown
        machine.names[key] = value
    return value


def resolved_value(frame: Frame, found: Resolved, name: str) -> Value:
    """The value of what a global name stands for."""
    if isinstance(found, ClassFacts):
        return ClassValue(found)
    if isinstance(found, FunctionFacts):
        return FunctionValue(found)
    if isinstance(found, ModuleFacts):
        return ModuleValue(found.name)
    if isinstance(found, str):
        return External(found)
    if isinstance(found, tuple):
        return _global_value(frame, found[0], name, found[1])
    return UNKNOWN


def _global_value(frame: Frame, module: ModuleFacts, name: str, node: ast.expr) -> Value:
    key = (module.name, name)
    machine = frame.machine
    if key not in machine.globals:
        machine.globals[key] = UNKNOWN
        if isinstance(node, _KNOWN) and not _is_none(node):
            inner = Frame(machine, module, None, None, State({}, Heap()), frame.depth + 1)
            machine.globals[key] = machine.evaluate(inner, node)
    return machine.globals[key]


def _is_none(node: ast.expr) -> bool:
    """Whether the name waits for somebody to bind it."""
    return isinstance(node, ast.Constant) and node.value is None
