"""Operators that keep the shape, or give the broadcast one."""

from __future__ import annotations

import ast
from dataclasses import replace

from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import (
    Arguments,
    Keywords,
    cast_dtype,
    dim_argument,
    tensor_of,
)
from shapecheck.static.operators.meetings import base_text, broadcast, fill, meet, without_axis
from shapecheck.static.operators.table import Operator
from shapecheck.static.values import UNKNOWN, DType, Tensor, Unknown, Value

_KEEPS_VALUES = frozenset(
    ["to", "cuda", "cpu", "long", "int", "contiguous", "clone", "detach", "pin_memory"]
)


def same(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = args[0] if args and isinstance(args[0], (Tensor, Unknown)) else UNKNOWN
    if not isinstance(source, Tensor):
        return source
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    dtype = DType(op.dtype) if op.dtype else cast_dtype(source, name, args[1:], keywords)
    total = source.total if name in _KEEPS_VALUES else None
    if dtype is source.dtype and total is source.total:
        return source
    return replace(source, dtype=dtype, total=total)


def broadcast_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if len(args) < 2:
        return same(frame, op, args, keywords, node)
    return broadcast(frame, op.kind, args[0], args[1], node)


def where_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if len(args) == 3:
        # `x.where(test, y)` has the receiver first, `torch.where(test, x, y)` the test.
        is_method = len(node.args) + len(node.keywords) == 2
        return broadcast(frame, "where", args[0 if is_method else 1], args[2], node)
    return UNKNOWN


def inplace(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if len(args) > 1 and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
        meet(frame, "in-place", args[0], args[1], node)
    return args[0] if args else UNKNOWN


def fill_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if len(args) < 2 or not isinstance(node.func, ast.Attribute):
        return UNKNOWN
    fill(frame, args[0], args[1], node.func.value, node.args[0] if node.args else node, node)
    return args[0]


def index_fill_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """`x.index_copy_(dim, index, y)`: all axes of `y` but that one are as long as those of `x`."""
    into, source = tensor_of(args), tensor_of(args, 3)
    dim = dim_argument(args, keywords)
    if into is None or source is None or dim is None or not isinstance(node.func, ast.Attribute):
        return args[0] if args else UNKNOWN
    left, right = without_axis(into, dim), without_axis(source, dim)
    meet(frame, node.func.attr, left, right, node, fills=True, cell=base_text(node.func.value))
    return into
