"""Kernel pairs: offsets handed over beside the rows that they divide among the requests.

`qo_indptr`, `cu_seqlens_q` and `query_start_loc` say where each request's rows of `q` begin, so
their last value is the number of those rows. Nothing checks it: a kernel reads where it is told.
"""

from __future__ import annotations

import ast
import re

from shapecheck.static.frames import Frame
from shapecheck.static.guards import last_name
from shapecheck.static.operators.meetings import meet
from shapecheck.static.values import Tensor, Value, plain_values

_OFFSETS = re.compile(
    r"(?:cu_seqlens?_(?P<of>\w+)|(?P<before>\w+?)_(?:indptr|start_locs?|cu_seqlens?))(?:_\w+)?$"
)
_ROWS = {
    "q": ("q", "query", "queries"),
    "qo": ("q", "query", "queries"),
    "query": ("q", "query", "queries"),
    "k": ("k", "key", "keys", "v", "value", "values"),
    "kv": ("kv_indices",),
}


def note_pairs(
    frame: Frame, arguments: tuple[Value, ...], keywords: dict[str, Value], node: ast.Call
) -> None:
    """Let the total of every argument that holds offsets meet the rows of what it divides."""
    if not any(map(_holds_total, (*arguments, *keywords.values()))):
        return
    stars = any(isinstance(one, ast.Starred) for one in node.args)
    names = () if stars else [last_name(one).lstrip("_") for one in node.args]
    named = dict(zip(names, arguments, strict=False)) | keywords
    for name, offsets in named.items():
        divided = _divided(name)
        if not divided:
            continue
        for partner in _ROWS.get(divided, (divided, f"{divided}_indices")):
            if partner in named:
                _meet(frame, offsets, named[partner], node)


def _holds_total(value: Value) -> bool:
    return any(isinstance(one, Tensor) and one.total is not None for one in plain_values(value))


def _divided(name: str) -> str:
    """What the offsets of this name divide, or '' where it names none."""
    match = _OFFSETS.match(name)
    return "" if match is None else match["of"] or match["before"]


def _meet(frame: Frame, offsets: Value, rows: Value, node: ast.Call) -> None:
    for one in _tensors(offsets):
        for other in _tensors(rows):
            first = other.axis(0) if other.dims is not None else None
            if one.total is not None and first is not None:
                meet(
                    frame,
                    last_name(node.func) or "a kernel",
                    Tensor((first,)),
                    Tensor((one.total,)),
                    node,
                )


def _tensors(value: Value) -> list[Tensor]:
    return [one for one in plain_values(value) if isinstance(one, Tensor)]
