"""Operators that pick rows or elements, and subscripts."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.facts import Slice
from shapecheck.static.guards import hangs_on_mode
from shapecheck.static.machine import Frame
from shapecheck.static.operators.arguments import Arguments, Keywords, dim_argument, tensor_of
from shapecheck.static.operators.table import Operator
from shapecheck.static.values import UNKNOWN, Axis, Const, Sequence, Size, Tensor, Value


def gather(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    index = tensor_of(args, 2)
    source = tensor_of(args)
    return Tensor(index.dims if index else None, None, source.dtype if source else None)


def index_select(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim, index = tensor_of(args), dim_argument(args, keywords), tensor_of(args, 2)
    if source is None or source.dims is None or dim is None:
        return Tensor(None, source.last if source and dim == 0 else None)
    if not -len(source.dims) <= dim < len(source.dims):
        return Tensor()
    dims = list(source.dims)
    dims[dim] = index.axis(0) if index else None
    return Tensor(tuple(dims), dtype=source.dtype)


def index_tensor(frame: Frame, base: Tensor, node: ast.expr, index: Value) -> Value:
    """`x[...]`: slices and indices axis by axis."""
    parts = list(node.elts) if isinstance(node, ast.Tuple) else [node]
    values: list[Value] = (
        list(index.items)
        if isinstance(node, ast.Tuple) and isinstance(index, Sequence)
        else [index] * len(parts)
    )
    if len(values) != len(parts):
        values = [UNKNOWN] * len(parts)
    if base.dims is None:
        plain_prefix = len(parts) == 1 and not _is_none(parts[0])
        keeps = plain_prefix or _is_ellipsis_slice(parts)
        return Tensor(None, base.last if keeps else None, base.dtype, base.owned, base.ids)
    dims: list[Axis] = []
    position = 0
    for part, value in zip(parts, values, strict=True):
        if _is_none(part):
            dims.append(Size(Poly.constant(1)))
            continue
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            rest = sum(1 for one in parts if not _is_none(one)) - 1
            keep = len(base.dims) - rest
            dims.extend(base.dims[position : max(position, keep)])
            position = max(position, keep)
            continue
        axis = base.dims[position] if position < len(base.dims) else None
        position += 1
        if isinstance(part, ast.Slice):
            dims.append(_sliced(frame, axis, part, node))
        elif isinstance(value, Tensor):
            facts = frame.machine.facts
            facts.saw_lookup(value.ids, axis, frame.module.span(node), frame.where)
            rank = len(value.dims) if value.dims is not None else 0
            kind = value.dtype.name if value.dtype is not None else ""
            if kind == "bool" and rank:
                dims.append(None)  # a mask picks rows of all the axes it covers
                position += rank - 1
            elif rank == 1 or (rank and kind):
                dims.extend(value.dims or ())
            else:
                rest = base.dims[-1] if position < len(base.dims) else None
                return Tensor(None, rest, base.dtype)
        elif isinstance(value, Const | Size):
            continue
        else:
            return Tensor(None, base.dims[-1] if position < len(base.dims) else None, base.dtype)
    dims.extend(base.dims[position:])
    return Tensor(tuple(dims), dtype=base.dtype, ids=base.ids)


def _sliced(frame: Frame, axis: Axis, part: ast.Slice, node: ast.expr) -> Axis:
    """`[:n]` has n rows, or as many as there are; a fact for the rules of counts."""
    if part.step is not None or part.lower is not None:
        return None
    if part.upper is None:
        return axis
    bound = frame.machine.evaluate(frame, part.upper)
    if not isinstance(bound, Size):
        return None
    if axis is not None and axis.poly.symbols() and bound.poly.symbols():
        span = frame.module.span(node)
        cut = Slice(
            rows=axis,
            bound=bound,
            moded=hangs_on_mode(frame.guards),
            span=span,
            where=frame.where,
        )
        frame.machine.facts.slices.setdefault((span, axis, bound), cut)
    return bound


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ellipsis_slice(parts: list[ast.expr]) -> bool:
    last = parts[-1]
    return isinstance(last, ast.Constant) and last.value is Ellipsis
