"""What a comparison in the traced code guards: a silent copy, a demand, or a plain branch."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache


class Guard(StrEnum):
    """The role of a comparison of sizes."""

    COPY = "copy"
    ASSERT = "assert"  # goes on only if it holds
    REFUSE = "refuse"  # goes on only if it does not hold
    CHOOSE = "choose"  # the other arm may refuse
    BRANCH = "branch"


def guard_at(filename: str, line: int) -> Guard:
    """The role of the comparison on this line; BRANCH when the source is not at hand."""
    return dict(_guards("".join(linecache.getlines(filename)))).get(line, Guard.BRANCH)


@lru_cache(maxsize=256)
def _guards(source: str) -> tuple[tuple[int, Guard], ...]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    return tuple(_of_tree(tree))


def _of_tree(tree: ast.AST) -> Iterator[tuple[int, Guard]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                guard = Guard.ASSERT
            case ast.If(test=test, body=[*_, ast.Raise()]):
                guard = Guard.REFUSE
            case ast.If(test=test, body=body, orelse=[]) if any(_copies(part) for part in body):
                guard = Guard.COPY
            case ast.If(test=test, orelse=orelse) if any(_raises(part) for part in orelse):
                guard = Guard.CHOOSE
            case _:
                continue
        for line in range(test.lineno, (test.end_lineno or test.lineno) + 1):
            yield line, guard


def _copies(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(attr="copy_")):
                return True
            case ast.Assign(targets=[ast.Subscript(slice=ast.Slice() | ast.Tuple())]):
                return True
            case _:
                continue
    return False


def _raises(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Raise) for node in ast.walk(statement))
