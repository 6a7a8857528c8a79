"""The two sides of a graph runner: what is computed at capture, and again at replay."""

from __future__ import annotations

import ast
from functools import lru_cache

from shapecheck.static.counts import units_of
from shapecheck.static.facts import Formula
from shapecheck.static.frames import Frame
from shapecheck.static.guards import hangs_on_mode, single_branch
from shapecheck.static.values import Size, Unknown, Value
from shapecheck.static.wording import wording

_SIDES = ("capture", "replay")


def note_formula(frame: Frame, target: ast.expr, value: Value, node: ast.expr) -> None:
    """Remember what a capture or a replay gives a name; what it may be otherwise as unknown."""
    if not isinstance(value, (Size, Unknown)) or isinstance(node, ast.Constant):
        return
    for function in reversed(frame.stack):
        side = _side_of(function.name)
        if side and function.cls is not None:
            break
    else:
        return
    known = isinstance(value, Size) and units_of(value.poly) is not None
    size = value if known and isinstance(value, Size) and value.poly.symbols() else None
    if hangs_on_mode(frame.guards):
        size = None  # which of the modes the other side is in is not known
    span = frame.module.span(node)
    key = (f"{function.module.path}:{function.cls.name}", wording(target))
    made = Formula(
        side=side,
        size=size,
        span=span,
        where=frame.where,
        single_branch=single_branch(frame.guards),
    )
    frame.machine.facts.formulae.setdefault(key, {}).setdefault((span, size), made)


@lru_cache(maxsize=65536)
def _side_of(name: str) -> str:
    """The one side that a function's name speaks of, or ''."""
    sides = [side for side in _SIDES if side in name.lower()]
    return sides[0] if len(sides) == 1 else ""
