"""Two versions of a file that differ in comments and layout only: where each node has gone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from shapecheck.static.loader import PLACED, Source, UnreadableFileError, parse_source, split_lines
from shapecheck.static.prefilter import Weight

Place = tuple[int, int]  # line from 1, column from 1
_Pair = tuple[object, object]


def moves(old: str, new: str, weigh: Callable[[str], Weight]) -> Mapping[Place, Place] | None:
    """The new place of every node, or None when the two do not mean the same to the analysis.

    `weigh` tells by the text of a function whether it is interpreted on its own, as `weight` does.
    """
    try:
        pairs: list[_Pair] = [
            (parse_source(Source(path="", text=old)), parse_source(Source(path="", text=new)))
        ]
    except UnreadableFileError:
        return None
    before, after = split_lines(old), split_lines(new)
    moved: dict[Place, Place] = {}
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return None
        if isinstance(one, list):
            items, others = cast("list[object]", one), cast("list[object]", other)
            if len(items) != len(others):
                return None
            pairs.extend(zip(items, others, strict=True))
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST):
            place, goal = _place(one), _place(other)
            # Added parentheses part an expression from the first name in it: rare, so give up.
            if place and goal and moved.setdefault(place, goal) != goal:
                return None
            texts = _text(one, before), _text(other, after)
            if texts[0] != texts[1] and weigh(texts[0]) != weigh(texts[1]):
                return None
            pairs.extend(_fields(one, other))
        elif one != other:
            return None
    return moved


def _fields(one: ast.AST, other: ast.AST) -> Iterator[_Pair]:
    for name in one._fields:
        yield getattr(one, name, None), getattr(other, name, None)


def _place(node: ast.AST) -> Place | None:
    if isinstance(node, PLACED):
        return node.lineno, node.col_offset + 1
    return None


def _text(node: ast.AST, lines: Sequence[str]) -> str:
    """The text of a function, comments included; empty for any other node."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])
