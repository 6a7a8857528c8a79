"""Operators that pick rows or elements, and subscripts."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.facts import Slice
from shapecheck.static.frames import Frame
from shapecheck.static.guards import hangs_on_mode
from shapecheck.static.operators.arguments import Arguments, Keywords, dim_argument, tensor_of
from shapecheck.static.operators.meetings import broadcast_axes
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
        plain_prefix = len(parts) == 1 and not _is_none(parts[0]) and not _is_mask(values[0])
        keeps = plain_prefix or _is_ellipsis(parts[-1]) or _is_whole(parts[-1])
        return Tensor(None, base.last if keeps else None, base.dtype, base.owned, base.ids)
    if sum(_is_index(part, value) for part, value in zip(parts, values, strict=True)) > 1:
        return _picked_together(base, parts, values)
    dims: list[Axis] = []
    position = 0
    for part, value in zip(parts, values, strict=True):
        if _is_none(part):
            dims.append(Size(Poly.constant(1)))
            continue
        if _is_ellipsis(part):
            keep = max(position, len(base.dims) - _behind(parts))
            dims.extend(base.dims[position:keep])
            position = keep
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
                return Tensor(None, _last(base.dims, parts), base.dtype)
        elif isinstance(value, (Const, Size)):
            continue
        else:
            return Tensor(None, _last(base.dims, parts), base.dtype)
    dims.extend(base.dims[position:])
    return Tensor(tuple(dims), dtype=base.dtype, ids=base.ids)


def _is_index(part: ast.expr, value: Value) -> bool:
    """Whether the part is an index tensor; one without axes is a number."""
    return isinstance(value, Tensor) and value.dims != () and not isinstance(part, ast.Slice)


def _picked_together(base: Tensor, parts: list[ast.expr], values: list[Value]) -> Tensor:
    """`x[i, j]`: the index tensors are broadcast to one group of axes, which stands where the first
    of them stood, or in front when a slice lies between them.
    """
    assert base.dims is not None
    before: list[Axis] = []
    behind: list[Axis] = []
    group: tuple[Axis, ...] | None = None
    split, position = False, 0  # numbers pick their axes first, so they split nothing
    for part, value in zip(parts, values, strict=True):
        rest = behind if group is not None else before
        if _is_none(part):
            rest.append(Size(Poly.constant(1)))
        elif _is_ellipsis(part):
            keep = max(position, len(base.dims) - _behind(parts))
            rest.extend(base.dims[position:keep])
            position = keep
        elif isinstance(part, ast.Slice):
            rest.append(None)
            position += 1
        elif isinstance(value, Tensor) and _is_index(part, value):
            if value.dims is None or (value.dtype is not None and value.dtype.name == "bool"):
                return Tensor(dtype=base.dtype)
            split = split or bool(behind)
            group = value.dims if group is None else broadcast_axes(group, value.dims)
            position += 1
        elif isinstance(value, (Tensor, Const, Size)):
            position += 1
        else:
            return Tensor(dtype=base.dtype)
    behind.extend(base.dims[position:])
    assert group is not None
    axes = (*group, *before, *behind) if split else (*before, *group, *behind)
    return Tensor(axes, dtype=base.dtype, ids=base.ids)


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


def _is_mask(value: Value) -> bool:
    """Whether it picks elements of how many axes is not known."""
    if not isinstance(value, Tensor) or value.dtype is None or value.dtype.name != "bool":
        return False
    return value.dims is None or len(value.dims) != 1


def _last(dims: tuple[Axis, ...], parts: list[ast.expr]) -> Axis:
    """The last axis, where no part of the subscript asks for it or stands in its place."""
    asked = sum(not _is_none(part) and not _is_ellipsis(part) for part in parts)
    kept = _is_ellipsis(parts[-1]) or not any(_is_none(p) or _is_ellipsis(p) for p in parts)
    return dims[-1] if kept and asked < len(dims) else None


def _behind(parts: list[ast.expr]) -> int:
    """How many axes are asked for behind the ellipsis."""
    at = next(at for at, part in enumerate(parts) if _is_ellipsis(part))
    return sum(not _is_none(part) for part in parts[at + 1 :])


def _is_whole(node: ast.expr) -> bool:
    """Whether the part is `:` alone: there is an axis in its place, and all of it stays."""
    return isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis
