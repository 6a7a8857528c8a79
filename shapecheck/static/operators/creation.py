"""Operators that make a tensor from sizes or from another tensor's shape."""

from __future__ import annotations

import ast
from dataclasses import replace

from shapecheck.dims.expr import Poly
from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import (
    Arguments,
    Keywords,
    axis_of,
    dtype_argument,
    shape_argument,
    tensor_of,
)
from shapecheck.static.operators.reduction import picked_ids
from shapecheck.static.operators.table import Operator
from shapecheck.static.symbols import Step, Symbol, bounded
from shapecheck.static.trails import with_step
from shapecheck.static.values import (
    UNKNOWN,
    Axis,
    Const,
    DType,
    Sequence,
    Shape,
    Size,
    Tensor,
    Unknown,
    Value,
    plain_values,
)
from shapecheck.static.wording import wording


def _created(
    frame: Frame, dims: tuple[Axis, ...] | None, keywords: Keywords, node: ast.Call
) -> Value:
    span = frame.module.span(node)
    owned = any(axis and any(s.owner for s in axis.poly.symbols()) for axis in dims or ())
    frame.machine.facts.saw_creation(span, owned=owned)
    for axis in dims or ():
        for step in axis.trail if axis else ():
            if step.kind == "passed":
                frame.machine.facts.sized.add(step.cell)
    if dims is None:
        return Tensor(dtype=dtype_argument(keywords.get("dtype")))
    tensor = Tensor(dims, dtype=dtype_argument(keywords.get("dtype")))
    return with_step(tensor, Step("created", wording(node.func), span))


def create_variadic(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    given = [keywords[op.keyword]] if op.keyword in keywords else list(args)
    if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("new_"):
        given = given[1:] if op.keyword not in keywords else given
    return _created(frame, shape_argument(given), keywords, node)


def create(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    given = keywords.get(op.keyword)
    if given is None:
        rest = list(args)
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("new_"):
            rest = rest[1:]
        if op.position < 0:
            given = next((a for a in rest if isinstance(a, (Sequence, Shape))), None)
        else:
            given = rest[op.position] if len(rest) > op.position else None
    return _created(frame, shape_argument([given]) if given is not None else None, keywords, node)


def arange(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    stop = args[0] if len(args) == 1 else None
    counts = len(args) == 1 and isinstance(args[0], (Size, Const, Unknown))
    is_float = isinstance(args[0], Const) and isinstance(args[0].value, float) if args else False
    if "dtype" not in keywords and counts and not is_float:
        keywords = {**keywords, "dtype": DType(op.dtype)}
    rows, total = _progression(args, keywords)
    made = _created(frame, (axis_of(stop) if stop is not None else rows,), keywords, node)
    return replace(made, total=total) if isinstance(made, Tensor) else made


def _progression(args: Arguments, keywords: Keywords) -> tuple[Axis, Axis]:
    """How many values `arange` makes and its last one, where both are sure.

    `arange(n)` has n and ends at n-1; `arange(0, n*w + 1, step=w)` has n+1 and ends at n*w.
    """
    ends = [axis_of(one) for one in args]
    step = axis_of(keywords["step"]) if "step" in keywords else Size(Poly.constant(1))
    if len(ends) == 3:
        step = ends.pop()
    if not ends or step is None or not step.poly.terms:
        return None, None
    end = ends[-1]
    if end is None or (len(ends) == 2 and (ends[0] is None or ends[0].poly.as_int() != 0)):
        return None, None
    for behind in (Poly[Symbol].constant(1), step.poly):
        last = bounded(end.poly - behind)
        count = None if last is None else last.divide(step.poly)
        if last is not None and count is not None:
            return Size(count + Poly.constant(1), end.trail), Size(last, end.trail)
    return None, None


def like(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = tensor_of(args)
    if source is None:
        return UNKNOWN
    frame.machine.facts.saw_creation(frame.module.span(node), owned=False)
    dtype = dtype_argument(keywords.get("dtype")) or source.dtype
    return Tensor(source.dims, source.last, dtype, source.owned)


def from_data(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    data = args[0] if args else UNKNOWN
    if isinstance(data, Tensor):
        return data
    if isinstance(data, Sequence) and not any(
        isinstance(plain, Sequence) for item in data.items for plain in plain_values(item)
    ):
        # A list under a name may have grown since it was written down.
        written = bool(node.args) and isinstance(node.args[0], (ast.List, ast.Tuple))
        rows = Size(Poly.constant(len(data.items))) if written else None
        return Tensor((rows,), dtype=dtype_argument(keywords.get("dtype")))
    return Tensor(dtype=dtype_argument(keywords.get("dtype")))


def unknown_tensor(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = tensor_of(args)
    ids = picked_ids(source, None) if source is not None and op.kind == "multinomial" else None
    return Tensor(dtype=DType(op.dtype) if op.dtype else None, ids=ids)
