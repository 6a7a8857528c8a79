"""What a loop runs over: its elements one by one where they are known, else any of them."""

from __future__ import annotations

import ast
from functools import lru_cache

from shapecheck.static.extent import manageable
from shapecheck.static.frames import Frame
from shapecheck.static.lists import any_item
from shapecheck.static.named import count_by_name
from shapecheck.static.unions import lift
from shapecheck.static.values import (
    UNKNOWN,
    Const,
    Items,
    Mapping,
    Plain,
    Sequence,
    Union,
    Unknown,
    Value,
    telling,
)
from shapecheck.static.walk import walk, walk_statements

_MAX_TURNS = 8
Loop = ast.For | ast.AsyncFor | ast.While


def turns(whole: Value) -> tuple[Value, ...]:
    """The elements to run a loop for one after the other; none where any of them stands for all."""
    if isinstance(whole, Mapping) and telling(whole) > 0:
        keys = entries_of(whole, "keys")
        return keys.items if isinstance(keys, Sequence) and len(keys.items) <= _MAX_TURNS else ()
    if not isinstance(whole, Sequence) or not 0 < len(whole.items) <= _MAX_TURNS:
        return ()
    return whole.items if telling(whole) > 0 else ()


def bind_element(frame: Frame, target: ast.expr, whole: Value) -> None:
    """Bind the target of a loop to whichever element of what it runs over."""
    bind_turn(frame, target, _any_element(whole))


def bind_turn(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind the target of a loop to one element."""
    if isinstance(target, ast.Name):
        count = count_by_name(frame, target.id, target) if value == UNKNOWN else None
        frame.state.env[target.id] = value if count is None else count
        return
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if isinstance(value, Sequence) and len(value.items) == len(parts) > 0:
        for inner, item in zip(parts, value.items, strict=True):
            bind_turn(frame, inner, item)
        return
    for name in walk(target):
        if isinstance(name, ast.Name):
            frame.state.env[name.id] = UNKNOWN


def _any_element(whole: Value) -> Value:
    return UNKNOWN if isinstance(whole, Unknown) else lift(_element, whole)


def _element(whole: Plain) -> Value:
    if isinstance(whole, Items):
        return any_item(whole)
    if isinstance(whole, Sequence) and whole.items:
        return any_item(Items(whole.items))
    return UNKNOWN


def forget_constants(frame: Frame, node: Loop) -> dict[str, Value]:
    """A constant that the body gives another value is not known where the body starts.

    Nor is anything that it stores, where the body tells its first turn from the others. Returns
    what these names hold instead: an unknown of their own, by its identity.
    """
    env, stored = frame.state.env, _stored_in(node)
    known = [name for name in stored if env.get(name, UNKNOWN) != UNKNOWN]
    every = bool(known) and _tells_turns(node, stored)
    forgotten: dict[str, Value] = {
        name: Unknown() for name in known if every or isinstance(env[name], Const)
    }
    env.update(forgotten)
    return forgotten


@lru_cache(maxsize=4096)
def _tells_turns(node: Loop, stored: frozenset[str]) -> bool:
    """Whether a test in the body compares a number of the loop's own with a literal."""
    own = set(stored)
    if not isinstance(node, ast.While):
        own |= {name.id for name in walk(node.target) if isinstance(name, ast.Name)}
    tests = [
        inner.test
        for statement in node.body
        for inner in walk(statement)
        if isinstance(inner, (ast.If, ast.IfExp))
    ]
    return any(
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id in own
        and isinstance(test.comparators[0], ast.Constant)
        and isinstance(test.comparators[0].value, int)
        for test in tests
    )


@lru_cache(maxsize=4096)  # a loop is run once for every call of its function
def _stored_in(node: Loop) -> frozenset[str]:
    return frozenset(
        name.id
        for statement in walk_statements(node.body)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for name in walk(statement)
        if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)
    )


def zipped(given: tuple[Value, ...]) -> Value:
    """`zip(...)`: the elements in pairs."""
    if not given:
        return UNKNOWN
    known = [one.items for one in given if isinstance(one, Sequence)]
    if len(known) == len(given):
        rows = [Sequence(row) for row in zip(*known, strict=False)]
        return manageable(Sequence(tuple(rows)))
    return _together(tuple(_any_alone(one) for one in given))


def enumerated(whole: Value) -> Value:
    """`enumerate(x)`: every element beside its number."""
    if isinstance(whole, Sequence):
        rows = [Sequence((Const(at), one)) for at, one in enumerate(whole.items)]
        return manageable(Sequence(tuple(rows)))
    return _together((UNKNOWN, _any_alone(whole)))


def entries_of(mapping: Mapping, method: str) -> Value:
    """`items()`, `keys()` or `values()` of a dict."""
    known = mapping.items()
    if known is None:
        value = _any_alone(Items(mapping.choices))
        if method == "keys" or value == UNKNOWN:
            return UNKNOWN
        return Items((value if method == "values" else Sequence((UNKNOWN, value)),))
    if method == "values":
        return Sequence(tuple(known.values()))
    keys = [Const(key) for key in known]
    if method == "keys":
        return Sequence(tuple(keys))
    return Sequence(tuple(map(Sequence, zip(keys, known.values(), strict=True))))


def _any_alone(whole: Value) -> Value:
    """Any element, where it is the same whichever it is: what it stands beside depends on it."""
    value = _any_element(whole)
    return UNKNOWN if isinstance(value, Union) else value


def _together(row: tuple[Value, ...]) -> Value:
    return UNKNOWN if all(one == UNKNOWN for one in row) else Items((Sequence(row),))
