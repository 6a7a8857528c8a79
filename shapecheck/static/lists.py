"""Lists that grow: `x.append(y)` and its like give the name a list of unknown length."""

from __future__ import annotations

import ast

from shapecheck.static.extent import manageable
from shapecheck.static.machine import Frame
from shapecheck.static.stores import store_attribute
from shapecheck.static.unions import lift, union
from shapecheck.static.values import (
    MAX_ALTERNATIVES,
    UNKNOWN,
    Alternative,
    Items,
    Plain,
    Sequence,
    Value,
    alternatives,
)

_PUTS_ONE = {"append", "appendleft", "insert"}
_PUTS_ALL = {"extend", "extendleft"}
_MOVES = {"pop", "popleft", "remove", "clear", "sort", "reverse"}
CHANGES = frozenset(_PUTS_ONE | _PUTS_ALL | _MOVES)


def grow_list(
    frame: Frame, node: ast.Call, function: ast.Attribute, arguments: tuple[Value, ...]
) -> bool:
    """Whether one of `CHANGES` is called on a list; if so the list is what it is from here on."""
    name = function.attr
    if not isinstance(function.value, (ast.Name, ast.Attribute)):
        return False
    before = frame.machine.evaluate(frame, function.value)
    if not any(isinstance(one.value, (Sequence, Items)) for one in alternatives(before)):
        return False
    put = () if name in _MOVES else _put(arguments[-1] if arguments else UNKNOWN, name)
    after = lift(lambda one: _grown(one, put), before)
    if isinstance(function.value, ast.Name):
        frame.state.env[function.value.id] = after
    else:
        holder = frame.machine.evaluate(frame, function.value.value)
        store_attribute(frame, holder, function.value.attr, after, node)
    return True


def _put(given: Value, name: str) -> tuple[Value, ...]:
    if name in _PUTS_ONE:
        return (given,)
    if isinstance(given, Sequence):
        return given.items
    return given.choices if isinstance(given, Items) else (UNKNOWN,)


def _grown(plain: Plain, put: tuple[Value, ...]) -> Value:
    if not isinstance(plain, (Sequence, Items)):
        return plain
    held = plain.items if isinstance(plain, Sequence) else plain.choices
    choices = tuple(dict.fromkeys((*held, *put)))
    return manageable(Items(choices)) if len(choices) <= MAX_ALTERNATIVES else UNKNOWN


def extended(left: Items, right: Sequence | Items) -> Value:
    """`left + right`."""
    return _grown(left, right.items if isinstance(right, Sequence) else right.choices)


def any_item(items: Items) -> Value:
    """Whichever element of a list of unknown length."""
    return union(Alternative(one.value) for choice in items.choices for one in alternatives(choice))
