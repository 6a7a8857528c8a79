"""Tests that compare shapes or two models' sizes, and the copies that hang on them."""

from __future__ import annotations

import ast
from typing import TypeGuard

from shapecheck.static.facts import EqualityTest, GuardedCopy
from shapecheck.static.frames import Frame
from shapecheck.static.operators.meetings import base_text
from shapecheck.static.symbols import owner_conflict
from shapecheck.static.values import Instance, Size, Union, Value, plain_values

_OF_TENSORS = ("named", "created")  # steps of an axis that a tensor has, not a config


def equality_test(frame: Frame, node: ast.If) -> EqualityTest | None:
    """The test `a.shape == b.shape` (one axis or all), alone or in a conjunction."""
    tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or):
        return None
    for test in tests:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            left, right = _shape_owner(test.left), _shape_owner(test.comparators[0])
            if left is not None and right is not None and left != right:
                return EqualityTest(
                    texts=frozenset((left, right)),
                    span=frame.module.span(test),
                    has_else=bool(node.orelse),
                )
    return None


def _shape_owner(node: ast.expr) -> str | None:
    """The text of `x` in `x.shape`, `x.shape[i]` or `x.size(i)`, else None."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "size"):
        return base_text(node.value)
    return None


def note_compared(frame: Frame, left: Value, right: Value) -> None:
    """Note that this class, or this function, asks whether two models' sizes are equal.

    What it does where they are not rests on that test, on ways that are not followed.
    """
    if not (isinstance(left, (Size, Union)) and isinstance(right, (Size, Union))):
        return
    for mine in filter(_is_read, plain_values(left)):
        for theirs in filter(_is_read, plain_values(right)):
            if owner_conflict(mine.poly, theirs.poly):
                holder = frame.where.rpartition(".")[0] or frame.where
                for symbol in mine.poly.symbols():
                    frame.machine.facts.compared.add((frame.module.path, holder, symbol.name))


def _is_read(value: Value) -> TypeGuard[Size]:
    """Whether it is a config's number, whatever was made of that size."""
    return isinstance(value, Size) and not any(one.kind in _OF_TENSORS for one in value.trail)


def note_guarded_copy(frame: Frame, node: ast.If, test: EqualityTest) -> None:
    """Note a test that guards one copy between the two it compares, and nothing else."""
    if node.orelse or len(node.body) != 1:
        return
    statement = node.body[0]
    copied = _copy_of(statement)
    if copied is None or {base_text(one) for one in copied} != set(test.texts):
        return
    into = base_text(copied[0])
    copy = GuardedCopy(test=test, into=into, cell=_field_of(frame, copied[0]))
    frame.machine.facts.guarded_copies.setdefault(test.span, copy)


def _copy_of(statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """The buffer and what is copied into it, or None."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "copy_" and call.args:
            return call.func.value, call.args[0]
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return statement.targets[0], statement.value
    return None


def _field_of(frame: Frame, node: ast.expr) -> str:
    """The field that a buffer is (`Class.name`), or the empty text."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Attribute):
        return ""
    holders = plain_values(frame.machine.evaluate(frame, node.value))
    found = (one.ref.cls for one in holders if isinstance(one, Instance))
    return next((f"{cls.name}.{node.attr}" for cls in found if cls is not None), "")
