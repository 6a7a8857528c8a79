"""The conditions of a path, as plain data, and what they say about counts."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from shapecheck.static.counts import unit_of_name
from shapecheck.static.walk import walk
from shapecheck.static.wording import wording


@dataclass(unsafe_hash=True, slots=True)
class Test:
    """A condition in source: its text, and what it says where it holds and where it does not.

    `single` tells, for false and for true, whether `topk == 1` follows.
    """

    text: str
    single: tuple[bool, bool]
    asks_mode: bool


@dataclass(unsafe_hash=True, slots=True)
class Guard:
    """A condition that holds where a value does; equal for the same test in the same sense."""

    test: Test = field(hash=False, compare=False)
    sense: bool
    identity: str

    @staticmethod
    def of(test: ast.expr, sense: bool, path: str = "") -> Guard:
        """The guard `test` (or its negation); the test of a flag is the same wherever it stands."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, sense = test.operand, not sense
        flag = test
        while isinstance(flag, ast.Attribute):
            flag = flag.value
        text = identity = wording(test)
        if not isinstance(flag, ast.Name):
            identity = f"{path}:{test.lineno}:{test.col_offset}:{text}"
        single = _says(test, False), _says(test, True)
        return Guard(Test(text, single, _asks_mode(test)), sense, identity)

    def negated(self) -> Guard:
        """The guard of the other branch."""
        return Guard(self.test, not self.sense, self.identity)

    def __str__(self) -> str:
        return self.test.text if self.sense else f"not ({self.test.text})"


def single_branch(guards: Iterable[Guard]) -> bool:
    """Whether `topk == 1` holds on the path: then a verify row is the steps and one more."""
    return any(guard.test.single[guard.sense] for guard in guards)


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
    return any(guard.test.asks_mode for guard in guards)


def _asks_mode(test: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("is_")
        for node in walk(test)
    )


def last_name(node: ast.expr) -> str:
    """`topk` of `self.args.topk`; the empty text for anything but names."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
