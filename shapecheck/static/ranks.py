"""Fields whose number of axes matters: joined, copied, or read along an axis behind the first."""

from __future__ import annotations

import ast

from shapecheck.static.frames import Frame
from shapecheck.static.values import Instance, plain_values


def note_ranked(frame: Frame, *nodes: ast.expr) -> None:
    """Remember the attribute that is used, under its slices, as one whose axes have to fit.

    Rows that are only counted or picked, or values that only index, fit whatever the rank is.
    """
    for node in nodes:
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            node = node.value
        if isinstance(node, ast.Attribute):
            name = f"{_holder(frame, node)}.{node.attr}".lstrip(".")
            frame.machine.facts.ranked.setdefault(name, frame.module.span(node))


def _holder(frame: Frame, node: ast.Attribute) -> str:
    """The class whose field it is, or the empty text."""
    for one in plain_values(frame.machine.evaluate(frame, node.value)):
        if isinstance(one, Instance) and one.ref.cls is not None:
            return one.ref.cls.name
    return ""


def note_joined(frame: Frame, node: ast.Call) -> None:
    """Remember the fields that are concatenated: there a placeholder meets live rows."""
    given = node.args[0] if node.args else None
    parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    fields = [part for part in parts if isinstance(part, ast.Attribute)]
    for part in parts:
        note_ranked(frame, part)
    for name in dict.fromkeys(field.attr for field in fields):
        holders = [one for field in fields if field.attr == name for one in _classes(frame, field)]
        for holder in holders or [""]:
            place = frame.module.span(node)
            frame.machine.facts.joined.setdefault(f"{holder}.{name}".lstrip("."), place)


def _classes(frame: Frame, node: ast.Attribute) -> list[str]:
    """The classes whose field it may be, their bases included; none when no class is known."""
    return [
        base.name
        for one in plain_values(frame.machine.evaluate(frame, node.value))
        if isinstance(one, Instance) and one.ref.cls is not None
        for base in frame.machine.project.mro(one.ref.cls)
    ]


def note_axis(frame: Frame, node: ast.Subscript, index: int | None) -> None:
    """Note `x.shape[1]` and `x[:, 0]`: they ask for an axis that one of another rank lacks."""
    if isinstance(node.slice, ast.Tuple):
        if sum(not _is_new_axis(part) for part in node.slice.elts) > 1:
            note_ranked(frame, node.value)
    elif isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and index:
        note_ranked(frame, node.value.value)


def _is_new_axis(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value in (None, Ellipsis)
