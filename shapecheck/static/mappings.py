"""Dicts: entries that are put in them, methods that look them up."""

from __future__ import annotations

import ast

from shapecheck.static.changes import change
from shapecheck.static.extent import manageable
from shapecheck.static.frames import Frame
from shapecheck.static.loops import entries_of
from shapecheck.static.unions import union
from shapecheck.static.values import (
    NONE,
    UNKNOWN,
    Alternative,
    Const,
    DType,
    Mapping,
    Plain,
    Size,
    Tensor,
    Union,
    Value,
    alternatives,
    plain_values,
)

MAX_ENTRIES = 16
DICT_CHANGES = frozenset(("update", "pop", "popitem", "setdefault", "clear"))
_VIEWS = ("items", "keys", "values")


def looked_up(mapping: Mapping, key: Value) -> Value:
    """`mapping[key]`; where the key is not known any of the objects, or the size of all."""
    items = mapping.items()
    if items is not None and isinstance(key, Const):
        return items.get(key.value, UNKNOWN)
    value = union(
        Alternative(one.value) for choice in mapping.choices for one in alternatives(choice)
    )
    sized = any(isinstance(one, (Size, Tensor, DType)) for one in plain_values(value))
    return UNKNOWN if sized and isinstance(value, Union) else value


def call_mapping(mapping: Mapping, method: str, arguments: tuple[Value, ...]) -> Value:
    """The result of a method of a dict that changes nothing; unknown for any other."""
    if method in _VIEWS and not arguments:
        return entries_of(mapping, method)
    if method in ("get", "pop") and arguments:
        items, key = mapping.items(), arguments[0]
        if items is not None and isinstance(key, Const) and key.value not in items:
            return arguments[1] if len(arguments) > 1 else UNKNOWN
        return looked_up(mapping, key)
    return mapping if method == "copy" else UNKNOWN


def change_mapping(
    frame: Frame,
    node: ast.Call,
    function: ast.Attribute,
    arguments: tuple[Value, ...],
    keywords: dict[str, Value],
) -> None:
    """Where one of `DICT_CHANGES` is called on a dict, it is what it is from here on."""
    if not isinstance(function.value, (ast.Name, ast.Attribute)):
        return
    before = frame.machine.evaluate(frame, function.value)
    if not any(isinstance(one, Mapping) for one in plain_values(before)):
        return

    def changed(plain: Plain) -> Value:
        if not isinstance(plain, Mapping):
            return plain
        return _changed(plain, function.attr, arguments, keywords)

    change(frame, function.value, before, changed, node)


def _changed(
    mapping: Mapping, method: str, arguments: tuple[Value, ...], keywords: dict[str, Value]
) -> Value:
    items, key = mapping.items(), arguments[0] if arguments else UNKNOWN
    if method == "clear":
        return Mapping((), ())
    if method == "update":
        given = key.items() if isinstance(key, Mapping) else None if arguments else {}
        if given is None:
            return UNKNOWN
        made: Value = mapping
        for name, value in (given | keywords).items():
            made = with_entry(made, Const(name), value) if isinstance(made, Mapping) else UNKNOWN
        return made
    if method == "setdefault" and items is not None and isinstance(key, Const):
        value = arguments[1] if len(arguments) > 1 else NONE
        return mapping if key.value in items else with_entry(mapping, key, value)
    return without(mapping, key) if method == "pop" else UNKNOWN


def without(plain: Plain, key: Value) -> Value:
    """The dict or list after `del plain[key]`."""
    items = plain.items() if isinstance(plain, Mapping) else None
    if items is None or not isinstance(key, Const):
        return UNKNOWN
    items.pop(key.value, None)
    return Mapping(tuple(items.values()), tuple(items))


def with_entry(plain: Plain, key: Value, value: Value) -> Value:
    """The dict after `mapping[key] = value`; of one whose keys are not known any value is one."""
    if not isinstance(plain, Mapping):
        return plain
    items = plain.items()
    if items is not None and isinstance(key, Const):
        items[key.value] = value
        if len(items) <= MAX_ENTRIES:
            return manageable(Mapping(tuple(items.values()), tuple(items)))
        return UNKNOWN
    if all(choice == value for choice in plain.choices):
        return Mapping((value,))
    return UNKNOWN
