"""Dicts: entries that are put in them, methods that look them up."""

from __future__ import annotations

from shapecheck.static.extent import manageable
from shapecheck.static.loops import entries_of
from shapecheck.static.unions import union
from shapecheck.static.values import (
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
