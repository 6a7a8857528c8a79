"""Contexts: what a with statement gives the name behind `as`."""

from __future__ import annotations

import ast

from shapecheck.static.frames import Frame
from shapecheck.static.lists import any_item
from shapecheck.static.values import UNKNOWN, Instance, Items, Plain, Value


def entered(frame: Frame, manager: Plain, node: ast.expr) -> Value:
    """What `with manager as x` gives: a generator makes a context of what it yields."""
    if isinstance(manager, Items):
        return any_item(manager)
    if isinstance(manager, Instance) and manager.ref.cls is not None:
        for name in ("__enter__", "__aenter__"):
            method = frame.machine.project.method(manager.ref.cls, name)
            if method is not None:
                return frame.machine.call(frame, method, manager, (), {}, node)
    return UNKNOWN
