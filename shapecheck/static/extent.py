"""How large a container may grow before it is no longer followed."""

from __future__ import annotations

from shapecheck.static.values import (
    UNKNOWN,
    External,
    Items,
    Mapping,
    Sequence,
    Union,
    Value,
    plain_values,
)

_MAX_PARTS = 1024


def manageable(value: Sequence | Items | Mapping) -> Value:
    """The container, or unknown when it holds more than is worth comparing over and over."""
    parts: list[Value] = [value]
    for number, one in enumerate(parts):
        if number > _MAX_PARTS:
            return UNKNOWN
        if isinstance(one, Sequence):
            parts.extend(one.items)
        elif isinstance(one, (Mapping, Items)):
            parts.extend(one.choices)
        elif isinstance(one, Union):
            parts.extend(plain_values(one))
        elif isinstance(one, External) and one.receiver is not None:
            parts.append(one.receiver)
    return value
