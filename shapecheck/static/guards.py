"""What the guards of a path say about counts."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from shapecheck.static.counts import unit_of_name
from shapecheck.static.symbols import Guard
from shapecheck.static.walk import walk


def single_branch(guards: Iterable[Guard]) -> bool:
    """Whether `topk == 1` holds on the path: then a verify row is the steps and one more."""
    return any(_says(guard.test, guard.sense) for guard in guards)


def _says(test: ast.expr, sense: bool) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _says(test.operand, not sense)
    if isinstance(test, ast.BoolOp):
        # A true conjunction and a false disjunction hold in every part.
        if isinstance(test.op, ast.And) is sense:
            return any(_says(value, sense) for value in test.values)
        return False
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    right = test.comparators[0]
    if not (isinstance(right, ast.Constant) and right.value == 1):
        return False
    if unit_of_name(last_name(test.left))[0] != "topk":
        return False
    wanted = (ast.Eq, ast.LtE) if sense else (ast.NotEq, ast.Gt)
    return isinstance(test.ops[0], wanted)


def hangs_on_mode(guards: Iterable[Guard]) -> bool:
    """Whether the path hangs on what mode it is (`forward_mode.is_decode()`)."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("is_")
        for guard in guards
        for node in walk(guard.test)
    )


def last_name(node: ast.expr) -> str:
    """`topk` of `self.args.topk`; the empty text for anything but names."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
