"""Named tuples: objects whose fields are found by their number as well."""

from __future__ import annotations

import ast

from shapecheck.static.attributes import read_named
from shapecheck.static.frames import Frame
from shapecheck.static.index import ClassFacts
from shapecheck.static.project import annotation_head
from shapecheck.static.values import Instance, Plain, Sequence


def as_row(frame: Frame, value: Plain, node: ast.expr) -> Plain:
    """The fields of a named tuple in their order; any other value as it is."""
    if not isinstance(value, Instance) or value.ref.cls is None:
        return value
    order = frame.machine.project.mro(value.ref.cls)
    if not any(_is_named(cls) for cls in order):
        return value
    names = dict.fromkeys(name for cls in reversed(order) for name in cls.annotations)
    return Sequence(tuple(read_named(frame, value, name, node) for name in names))


def _is_named(cls: ClassFacts) -> bool:
    return any(annotation_head(base) == "NamedTuple" for base in cls.node.bases)
