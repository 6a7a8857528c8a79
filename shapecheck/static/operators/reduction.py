"""Operators that drop, shorten or measure an axis."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import (
    Arguments,
    Keywords,
    axis_of,
    cast_dtype,
    dim_argument,
    tensor_of,
)
from shapecheck.static.operators.table import Operator
from shapecheck.static.values import (
    UNKNOWN,
    Axis,
    Const,
    DType,
    Sequence,
    Shape,
    Size,
    Tensor,
    Value,
)


def reduce(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = tensor_of(args)
    if source is None:
        return UNKNOWN
    dim = dim_argument(args, keywords)
    keep = keywords.get("keepdim") == Const(True)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    dtype = DType(op.dtype) if op.dtype else cast_dtype(source, name, args[1:], keywords)
    ids = picked_ids(source, dim) if op.kind == "reduce_index" else None
    if source.dims is None or dim is None or not -len(source.dims) <= dim < len(source.dims):
        return Tensor(dtype=dtype, ids=ids)
    dims = list(source.dims)
    if keep:
        dims[dim] = Size(Poly.constant(1))
    else:
        del dims[dim]
    return Tensor(tuple(dims), dtype=dtype, ids=ids)


def picked_ids(source: Tensor, dim: int | None) -> Axis:
    """The vocabulary that positions along an axis number, when the axis is one."""
    axis = source.axis(-1 if dim is None else dim)
    if axis is None:
        return None
    return axis if any(symbol.name == "vocab" for symbol in axis.poly.symbols()) else None


def reduce_pair(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """Along an axis, the values and where they were; over everything, one value."""
    if len(args) > 1 and isinstance(args[1], Tensor):
        return UNKNOWN
    values = reduce(frame, op, args, keywords, node)
    if not isinstance(values, Tensor) or dim_argument(args, keywords) is None:
        return values
    source = tensor_of(args)
    ids = picked_ids(source, dim_argument(args, keywords)) if source is not None else None
    return Sequence((values, Tensor(values.dims, values.last, DType("int64"), ids=ids)))


def same_pair(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """Values of the same shape and where they were."""
    source = tensor_of(args)
    if source is None:
        return UNKNOWN
    return Sequence((source, Tensor(source.dims, source.last, DType("int64"))))


def topk(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = tensor_of(args)
    ids = picked_ids(source, None) if source is not None else None
    if source is None or source.dims is None or not source.dims:
        return Sequence((Tensor(), Tensor(dtype=DType("int64"), ids=ids)))
    count = keywords.get("k", args[1] if len(args) > 1 else UNKNOWN)
    dims = (*source.dims[:-1], axis_of(count))
    return Sequence((Tensor(dims, dtype=source.dtype), Tensor(dims, dtype=DType("int64"), ids=ids)))


def size_method_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = tensor_of(args), dim_argument(args, keywords)
    if source is None:
        return UNKNOWN
    return Shape(source) if dim is None else source.axis(dim) or UNKNOWN


def opaque_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    return UNKNOWN
