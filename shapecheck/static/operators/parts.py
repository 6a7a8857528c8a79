"""Operators that cut a tensor in parts along one axis."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import (
    Arguments,
    Keywords,
    axis_of,
    dim_argument,
    tensor_of,
)
from shapecheck.static.operators.meetings import with_axis
from shapecheck.static.operators.table import Operator
from shapecheck.static.values import (
    UNKNOWN,
    Const,
    Items,
    Sequence,
    Size,
    Union,
    Value,
)

_MAX_PARTS = 8


def split(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    """`split(x, (a, b))` has two parts of these sizes; of `split(x, n)` the last may be shorter."""
    source, dim = tensor_of(args), _along(args, keywords, 2)
    given = keywords.get("split_size_or_sections", args[1] if len(args) > 1 else UNKNOWN)
    if source is None or dim is None:
        return UNKNOWN
    if not isinstance(given, Sequence):
        return Items((with_axis(source, dim, None),))
    sizes = [None if isinstance(one, Union) else axis_of(one) for one in given.items]
    return Sequence(tuple(with_axis(source, dim, size) for size in sizes))


def chunk(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    """`chunk(x, n)` has n equal parts where that many go into the axis."""
    source, dim = tensor_of(args), _along(args, keywords, 2)
    count = keywords.get("chunks", args[1] if len(args) > 1 else UNKNOWN)
    if source is None or dim is None:
        return UNKNOWN
    number = count.value if isinstance(count, Const) else None
    if not isinstance(number, int) or not 0 < number <= _MAX_PARTS:
        return Items((with_axis(source, dim, None),))
    whole = source.axis(dim)
    size = None if whole is None else whole.poly.divide(Poly.constant(number))
    axis = None if whole is None or size is None else Size(size, whole.trail)
    return Sequence((with_axis(source, dim, axis),) * number)


def _along(args: Arguments, keywords: Keywords, position: int) -> int | None:
    """The axis that is cut, the first one by default."""
    if len(args) > position or "dim" in keywords:
        return dim_argument(args, keywords, position)
    return 0
