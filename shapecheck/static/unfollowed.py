"""Calls that are not followed to their end: what they may have stored is not known any more."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from shapecheck.static.heap import Key
from shapecheck.static.index import FunctionFacts, FunctionNode
from shapecheck.static.machine import Frame
from shapecheck.static.values import UNKNOWN, Instance, Value, plain_values
from shapecheck.static.walk import walk, walk_statements


def forget_stores(frame: Frame, function: FunctionFacts, given: Iterable[Value]) -> None:
    """Forget the fields that this path stored and a call that was `given` these may store anew.

    Those that it stores itself, and those that a method of their class does that is not at work.
    """
    heap = frame.state.heap
    if not heap.values or not any(map(_leads_to_objects, given)):
        return
    own = _stored_in(function.node)
    busy = {one.name for one in frame.stack} - {function.name} | {"__init__"}

    def may_store(key: Key) -> bool:
        ref, name = key
        if name in own:
            return True
        order = () if ref.cls is None else frame.machine.project.mro(ref.cls)
        return any(not busy.issuperset(cls.stores.get(name, ())) for cls in order)

    for key in [key for key in heap.values if may_store(key)]:
        heap.put(key, UNKNOWN)


def _leads_to_objects(value: Value) -> bool:
    return any(isinstance(one, Instance) for one in plain_values(value))


@lru_cache(maxsize=4096)
def _stored_in(node: FunctionNode) -> frozenset[str]:
    """The names of the fields that a function stores by itself, of whatever objects."""
    return frozenset(
        inner.attr
        for statement in walk_statements(node.body)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.With, ast.For))
        for inner in walk(statement)
        if isinstance(inner, ast.Attribute) and not isinstance(inner.ctx, ast.Load)
    )
