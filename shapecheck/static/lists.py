"""Lists that grow: `x.append(y)` and its like give the name a list of unknown length."""

from __future__ import annotations

import ast

from shapecheck.static.changes import change
from shapecheck.static.extent import manageable
from shapecheck.static.frames import Frame
from shapecheck.static.unions import union
from shapecheck.static.values import (
    MAX_ALTERNATIVES,
    UNKNOWN,
    Alternative,
    Const,
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

    def changed(plain: Plain) -> Value:
        if name == "clear" and isinstance(plain, (Sequence, Items)):
            return Sequence(())
        return _grown(plain, put)

    change(frame, function.value, before, changed, node)
    return True


def with_item(plain: Plain, index: Value, value: Value) -> Value:
    """The list after `plain[index] = value`; where the index is not known it is any of them."""
    if isinstance(plain, Sequence) and isinstance(index, Const) and isinstance(index.value, int):
        items = list(plain.items)
        if -len(items) <= index.value < len(items):
            items[index.value] = value
            return manageable(Sequence(tuple(items)))
    return _grown(plain, (value,))


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
