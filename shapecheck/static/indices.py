"""Indices whose values a function never uses: only how many there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapecheck.static.facts import UnusedIndex
from shapecheck.static.index import FunctionFacts
from shapecheck.static.walk import walk
from shapecheck.static.wording import wording

_INDEX_NAME = re.compile(
    r"(?:^|_)(?:indices|indexes|index|idx|idxs|keep|kept|selected|perm|permutation)$"
)


# The name of an index that is measured, in `len(index)` and `index.shape[0]`.
_MEASURED = re.compile(
    r"(?:indices|indexes|index|idx|idxs|keep|kept|selected|perm|permutation)[\s\\]*[).,#]"
)


def may_measure_index(text: str) -> bool:
    """Whether the text of a function can hold what `unused_indices` looks for."""
    return _MEASURED.search(text) is not None


def unused_indices(function: FunctionFacts) -> Iterator[UnusedIndex]:
    """Every `x[:len(index)]` of a function that uses nothing of `index` but its length.

    A counter is no index: the name has to be an argument, or be given a tensor or a list.
    """
    lengths: dict[str, list[ast.Subscript]] = {}
    loads: dict[str, int] = {}
    for node in walk(function.node):
        if isinstance(node, ast.Subscript):
            name = _prefix_length(node)
            if name is not None:
                lengths.setdefault(name, []).append(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[node.id] = loads.get(node.id, 0) + 1
    for name, cuts in lengths.items():
        measured = sum(1 for node in walk(function.node) if _measures(node, name))
        if loads.get(name, 0) > measured:
            continue
        for cut in sorted(cuts, key=lambda one: (one.lineno, one.col_offset)):
            yield UnusedIndex(
                index=name,
                target=wording(cut.value),
                span=function.module.span(cut),
                where=function.qualname,
            )


def _prefix_length(node: ast.Subscript) -> str | None:
    """The name of the index in `x[:len(index)]`, else None."""
    part = node.slice
    if (
        isinstance(part, ast.Slice)
        and part.lower is None
        and part.step is None
        and part.upper is not None
    ):
        name = measured_name(part.upper)
        if name is not None and _INDEX_NAME.search(name):
            return name
    return None


def measured_name(node: ast.expr) -> str | None:
    """The name in `len(name)`, `name.shape[0]`, `name.numel()`, `name.size(0)`, else None."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
            return node.args[0].id if isinstance(node.args[0], ast.Name) else None
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("numel", "size"):
            return node.func.value.id if isinstance(node.func.value, ast.Name) else None
        return None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        inner = node.value
        if inner.attr == "shape" and isinstance(inner.value, ast.Name):
            return inner.value.id
    return None


def _measures(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.expr) and measured_name(node) == name
