"""Operators that rearrange axes."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import (
    Arguments,
    Keywords,
    axis_of,
    dim_argument,
    shape_argument,
    tensor_of,
)
from shapecheck.static.operators.table import Operator
from shapecheck.static.symbols import SizePoly, Step, bounded
from shapecheck.static.values import UNKNOWN, Axis, Const, Sequence, Size, Tensor, Union, Value


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
    first = _literal(args, keywords, 1, "start_dim", 0)
    last = _literal(args, keywords, 2, "end_dim", -1)
    if source is None or first is None or last is None:
        return Tensor(dtype=source.dtype if source else None)
    if source.dims is None:
        whole = (first, last) == (0, -1)
        return Tensor((None,) if whole else None, dtype=source.dtype, ids=source.ids)
    rank = max(len(source.dims), 1)
    if not (-rank <= first < rank and -rank <= last < rank):
        return Tensor(dtype=source.dtype)
    first, last = first % rank, last % rank
    joined = _product(source.dims[first : last + 1]) if source.dims else Size(Poly.constant(1))
    dims = (*source.dims[:first], joined, *source.dims[last + 1 :])
    return Tensor(dims, dtype=source.dtype, ids=source.ids)


def _literal(
    args: Arguments, keywords: Keywords, position: int, name: str, default: int
) -> int | None:
    """The literal integer given at this place or by this name, or None for another value."""
    value = keywords.get(name, args[position] if len(args) > position else Const(default))
    return value.value if isinstance(value, Const) and isinstance(value.value, int) else None


def _product(dims: tuple[Axis, ...] | None) -> Axis:
    """How many elements there are, when every axis is known."""
    total: SizePoly = Poly.constant(1)
    trail: list[Step] = []
    for axis in dims or (None,):
        if axis is None:
            return None
        product = bounded(total * axis.poly)
        if product is None:
            return None
        total = product
        trail.extend(axis.trail)
    return Size(total, tuple(trail[-12:]))


def pad(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    """`pad(x, (left, right, ...))`: pairs from the last axis on are added to it."""
    source = tensor_of(args)
    given = args[1] if len(args) > 1 else keywords.get("pad", UNKNOWN)
    if source is None or not isinstance(given, Sequence) or len(given.items) % 2:
        return Tensor(dtype=source.dtype if source else None)
    ends = [axis_of(one) if not isinstance(one, Union) else None for one in given.items]
    pairs = [(ends[at], ends[at + 1]) for at in range(0, len(ends), 2)]
    if source.dims is None:
        last = _widened(source.last, pairs[0]) if pairs else source.last
        return Tensor(None, last, source.dtype)
    if len(pairs) > len(source.dims):
        return Tensor(dtype=source.dtype)
    dims = list(source.dims)
    for offset, pair in enumerate(pairs, 1):
        dims[-offset] = _widened(dims[-offset], pair)
    return Tensor(tuple(dims), dtype=source.dtype)


def _widened(axis: Axis, ends: tuple[Axis, Axis]) -> Axis:
    """The axis and what is put before and behind it, when all three are known."""
    total: SizePoly = Poly.constant(0)
    trail: list[Step] = []
    for one in (axis, *ends):
        if one is None:
            return None
        total = total + one.poly
        trail.extend(one.trail)
    kept = bounded(total)
    return None if kept is None else Size(kept, tuple(trail[-12:]))


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


def repeat(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """`x.repeat(a, b)`: sizes multiply the last axes; those beyond stand before the first one."""
    source, given = tensor_of(args), shape_argument(args[1:]) if len(args) > 1 else None
    if source is None or source.dims is None or given is None:
        return Tensor(dtype=source.dtype if source else None)
    one = Size(Poly.constant(1))
    rank = max(len(source.dims), len(given))
    own = (one,) * (rank - len(source.dims)) + source.dims
    times = (one,) * (rank - len(given)) + given
    dims = tuple(_product(pair) for pair in zip(own, times, strict=True))
    return Tensor(dims, dtype=source.dtype, ids=source.ids)


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
    made = _product((rows, by))
    return Tensor((made, *source.dims[1:]), dtype=source.dtype)
