"""Operators that rearrange axes."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.machine import Frame
from shapecheck.static.operators.arguments import (
    Arguments,
    Keywords,
    axis_of,
    dim_argument,
    shape_argument,
    tensor_of,
)
from shapecheck.static.operators.table import Operator
from shapecheck.static.symbols import SizePoly, Step
from shapecheck.static.values import UNKNOWN, Axis, Size, Tensor, Value


def view(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = tensor_of(args)
    given = shape_argument(args[1:]) if len(args) > 1 else None
    dtype = source.dtype if source else None
    if given is None:
        return Tensor(dtype=dtype)
    ids = source.ids if source else None
    return Tensor(tuple(_solve(axis) for axis in given), dtype=dtype, ids=ids)


def _solve(axis: Axis) -> Axis:
    return None if axis is None or axis.poly.as_int() == -1 else axis


def flatten(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = tensor_of(args)
    if source is None or len(args) > 1:
        return Tensor()
    return Tensor((_product(source.dims),), dtype=source.dtype, ids=source.ids)


def _product(dims: tuple[Axis, ...] | None) -> Axis:
    """How many elements there are, when every axis is known."""
    total: SizePoly = Poly.constant(1)
    trail: list[Step] = []
    for axis in dims or (None,):
        if axis is None:
            return None
        total = total * axis.poly
        trail.extend(axis.trail)
    return Size(total, tuple(trail[-12:])) if len(total.terms) <= 8 else None


def squeeze(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = tensor_of(args), dim_argument(args, keywords)
    if source is None or source.dims is None or dim is None:
        return Tensor(dtype=source.dtype if source else None)
    if not -len(source.dims) <= dim < len(source.dims):
        return Tensor(dtype=source.dtype)
    axis = source.dims[dim]
    if axis is None or axis.poly.as_int() is None:
        return Tensor(dtype=source.dtype)  # whether an axis goes depends on its number
    dims = list(source.dims)
    if axis.poly.as_int() == 1:
        del dims[dim]
    return Tensor(tuple(dims), dtype=source.dtype)


def unsqueeze(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = tensor_of(args), dim_argument(args, keywords)
    if source is None or source.dims is None or dim is None:
        return Tensor(dtype=source.dtype if source else None)
    dims = list(source.dims)
    dims.insert(dim if dim >= 0 else len(dims) + 1 + dim, Size(Poly.constant(1)))
    return Tensor(tuple(dims), dtype=source.dtype)


def transpose(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = tensor_of(args)
    one = dim_argument(args, keywords)
    other = dim_argument(args, {}, 2)
    if source is None or source.dims is None or one is None or other is None:
        return Tensor(dtype=source.dtype if source else None)
    dims, rank = list(source.dims), len(source.dims)
    if not (-rank <= one < rank and -rank <= other < rank):
        return Tensor(dtype=source.dtype)
    dims[one], dims[other] = dims[other], dims[one]
    return Tensor(tuple(dims), dtype=source.dtype)


def t_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = tensor_of(args)
    if source is None or source.dims is None:
        return Tensor(dtype=source.dtype if source else None)
    return Tensor(tuple(reversed(source.dims)), dtype=source.dtype)


def view_as(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    other = tensor_of(args, 1)
    return other if other is not None else Tensor()


def expand(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = tensor_of(args)
    given = shape_argument(args[1:])
    if given is None or source is None:
        return Tensor()
    dims = [
        source.axis(index - len(given)) if axis and axis.poly.as_int() == -1 else axis
        for index, axis in enumerate(given)
    ]
    return Tensor(tuple(dims), dtype=source.dtype)


def rank_only(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = tensor_of(args)
    if source is None or source.dims is None:
        return Tensor(dtype=source.dtype if source else None)
    return Tensor((None,) * len(source.dims), dtype=source.dtype)


def repeat_interleave(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = tensor_of(args), dim_argument(args, keywords, 2)
    if source is None or source.dims is None or dim != 0 or not source.dims:
        return Tensor(dtype=source.dtype if source else None)
    times = args[1] if len(args) > 1 else keywords.get("repeats", UNKNOWN)
    rows, by = source.dims[0], axis_of(times)
    made = Size(rows.poly * by.poly, (*rows.trail, *by.trail)[-12:]) if rows and by else None
    return Tensor((made, *source.dims[1:]), dtype=source.dtype)
