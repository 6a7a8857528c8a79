"""Calls that are not followed to their end: what they may have stored is not known any more."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from shapecheck.static.frames import Frame
from shapecheck.static.index import FunctionFacts, FunctionNode
from shapecheck.static.values import UNKNOWN, Instance, Value, plain_values
from shapecheck.static.walk import walk


def forget_stores(frame: Frame, function: FunctionFacts, given: Iterable[Value]) -> None:
    """Forget the fields that this path stored and a call that was `given` these may store anew.

    Those whose names it stores, those that a method stores that it names, and of what it was given
    those that any method stores that is not at work.
    """
    heap = frame.state.heap
    handed = {
        one.ref for value in given for one in plain_values(value) if isinstance(one, Instance)
    }
    if not handed or not heap.values:
        return
    stored, named = _names_in(function.node)
    busy = {one.name for one in frame.stack} - {function.name} | {"__init__"}
    known = [key for key, value in heap.values.items() if value is not UNKNOWN]
    for ref, name in known:
        methods = frame.machine.storing(ref.cls, name) - busy
        own = ref in handed or not named.isdisjoint(methods)
        if name in stored or (own and methods):
            heap.put((ref, name), UNKNOWN)


@lru_cache(maxsize=4096)
def _names_in(node: FunctionNode) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the fields that a function stores, of whatever objects, and of all others."""
    found = [one for one in walk(node) if isinstance(one, ast.Attribute)]
    stored = frozenset(one.attr for one in found if not isinstance(one.ctx, ast.Load))
    return stored, frozenset(one.attr for one in found) - stored
