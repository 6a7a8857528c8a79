"""Walking a syntax tree: every node, or only the statements, which is far less."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import cast


def walk(root: ast.AST, enter: Callable[[ast.AST], bool] | None = None) -> Iterator[ast.AST]:
    """Every node at or below `root`, in no particular order; `enter` tells where to look at all."""
    stack = [root]
    while stack:
        node = stack.pop()
        if enter is not None and not enter(node):
            continue
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                stack.append(value)
            elif isinstance(value, list):
                children = cast("list[object]", value)
                stack.extend(one for one in children if isinstance(one, ast.AST))


_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def walk_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement at or below a block, outer ones first, nested functions included."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in _BLOCKS:
            block = cast("list[ast.AST] | None", getattr(node, name, None))
            if block:
                stack.extend(reversed(block))
