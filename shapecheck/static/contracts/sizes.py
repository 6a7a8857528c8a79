"""Sizes asked for by name: `dims["draft_hidden"]` is the size that the vocabulary means by it."""

from __future__ import annotations

import ast

from shapecheck.static.contracts.promise import size_named
from shapecheck.static.frames import Frame
from shapecheck.static.guards import last_name
from shapecheck.static.symbols import Step
from shapecheck.static.values import Size
from shapecheck.static.wording import wording


def size_by_key(frame: Frame, holder: ast.expr, key: ast.expr, node: ast.expr) -> Size | None:
    """The size of `dims[key]` or `dims.get(key)`, or None when it names no owned size."""
    if last_name(holder).lstrip("_") != "dims":
        return None
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        return None
    poly = size_named(key.value)
    if poly is None:
        return None
    span = frame.module.span(node)
    owner = next((symbol.owner for symbol in poly.symbols()), "")
    frame.machine.facts.saw_dim_read(span, owner)
    return Size(poly, (Step("read", wording(node), span),))
