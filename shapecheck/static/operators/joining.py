"""Operators that put tensors together or multiply them."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import (
    Arguments,
    Keywords,
    dim_argument,
    multiplied_dtype,
    tensor_of,
)
from shapecheck.static.operators.meetings import broadcast_axes, meet, without_axis
from shapecheck.static.operators.table import Operator
from shapecheck.static.ranks import note_joined
from shapecheck.static.symbols import SizePoly, Step
from shapecheck.static.values import (
    UNKNOWN,
    Axis,
    Const,
    DType,
    Items,
    Plain,
    Sequence,
    Size,
    Tensor,
    Value,
    plain_values,
)


def cat(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    parts = args[0] if args else UNKNOWN
    if not isinstance(parts, (Sequence, Items)):
        return UNKNOWN
    held = parts.items if isinstance(parts, Sequence) else parts.choices
    dim = dim_argument(args, keywords)
    note_joined(frame, node)
    tensors = [plain for item in held for plain in plain_values(item) if isinstance(plain, Tensor)]
    if not tensors:
        return UNKNOWN
    first = tensors[0]
    along_last = dim is not None and (dim == -1 or dim == len(first.dims or ()) - 1)
    dtype = _one_dtype(tensors)
    for other in tensors[1:]:
        meet(frame, "torch.cat", without_axis(first, dim or 0), without_axis(other, dim or 0), node)
    if first.dims is None:
        whole = isinstance(parts, Sequence) and len(tensors) == len(held)
        total = _sum_axes([one.axis(-1) for one in tensors], complete=whole)
        return Tensor(None, total if along_last else first.last, dtype)
    at = 0 if dim is None else dim
    if not -len(first.dims) <= at < len(first.dims):
        return Tensor(dtype=dtype)
    dims = list(first.dims)
    counted = isinstance(parts, Sequence) and len(tensors) == len(held)
    dims[at] = _sum_axes([t.axis(at) for t in tensors], complete=counted)
    return Tensor(tuple(dims), dtype=dtype)


def _one_dtype(tensors: list[Tensor]) -> DType | None:
    """The dtype of tensors put together, unless two of them would have to be promoted."""
    dtypes = [one.dtype for one in tensors if one.dtype is not None]
    same = dtypes and all(one == dtypes[0] for one in dtypes)
    return dtypes[0] if same else None


def _sum_axes(axes: list[Axis], *, complete: bool) -> Axis:
    total: SizePoly = Poly.constant(0)
    trail: list[Step] = []
    for axis in axes:
        if axis is None or not complete:
            return None
        total = total + axis.poly
        trail.extend(axis.trail)
    return Size(total, tuple(trail[-12:]))


def stack(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    parts = args[0] if args else UNKNOWN
    note_joined(frame, node)
    if not isinstance(parts, (Sequence, Items)):
        return Tensor()
    held = parts.items if isinstance(parts, Sequence) else parts.choices
    tensors = [plain for item in held for plain in plain_values(item)]
    known = [one for one in tensors if isinstance(one, Tensor)]
    for other in known[1:]:
        meet(frame, "torch.stack", known[0], other, node)
    if not known or known[0].dims is None:
        return Tensor()
    dims = list(known[0].dims)
    at = dim_argument(args, keywords) if len(args) > 1 or "dim" in keywords else 0
    if at is None or not -len(dims) - 1 <= at <= len(dims):
        return Tensor((None,) * (len(dims) + 1), dtype=known[0].dtype)
    count = Size(Poly.constant(len(held))) if isinstance(parts, Sequence) else None
    dims.insert(at if at >= 0 else len(dims) + 1 + at, count)
    return Tensor(tuple(dims), dtype=known[0].dtype, ids=known[0].ids)


def matmul(frame: Frame, left: Plain, right: Plain, node: ast.expr) -> Value:
    """The matrix product: the inner axes meet."""
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return UNKNOWN
    inner, outer = left.axis(-1), right.axis(-2)
    if inner is not None and outer is not None:
        meet(frame, "matmul", Tensor((inner,)), Tensor((outer,)), node)
    if left.dims is None or right.dims is None:
        is_vector = right.dims is not None and len(right.dims) < 2
        return Tensor(None, None if is_vector else right.axis(-1))
    # A vector's one axis is summed over and gone.
    rows, columns = left.dims[-2:-1], right.dims[-1:] if len(right.dims) > 1 else ()
    stack = broadcast_axes(left.dims[:-2], right.dims[:-2])
    return Tensor((*stack, *rows, *columns), dtype=multiplied_dtype(left, right))


def matmul_rule(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    return matmul(frame, args[0], args[1], node) if len(args) > 1 else UNKNOWN


def linear(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, weight = tensor_of(args), tensor_of(args, 1)
    if source is None or weight is None:
        return UNKNOWN
    inner, outer = source.axis(-1), weight.axis(-1)
    if inner is not None and outer is not None:
        meet(frame, "linear", Tensor((inner,)), Tensor((outer,)), node)
    made = weight.axis(-2)
    dims = (*source.dims[:-1], made) if source.dims else None
    return Tensor(dims, made, multiplied_dtype(source, weight))


def embedding(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    ids, weight = tensor_of(args), tensor_of(args, 1)
    if weight is None:
        return UNKNOWN
    made = weight.axis(-1)
    if ids is not None:
        frame.machine.facts.saw_lookup(
            ids.ids, weight.axis(-2), frame.module.span(node), frame.where
        )
    dims = (*ids.dims, made) if ids is not None and ids.dims is not None else None
    return Tensor(dims, made, weight.dtype)


def einsum(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """`einsum("bh,vh->bv", x, y)`: axes under one letter meet."""
    equation = args[0].value if args and isinstance(args[0], Const) else None
    operands, arrow, made = str(equation).replace(" ", "").partition("->")
    names = operands.split(",")
    if not isinstance(equation, str) or "." in equation or len(names) != len(args) - 1:
        return Tensor()
    axes: dict[str, Axis] = {}
    for letters, operand in zip(names, args[1:], strict=True):
        dims = operand.dims if isinstance(operand, Tensor) else None
        if isinstance(operand, Tensor) and dims is None:
            dims = (*(None,) * (len(letters) - 1), operand.last)
        for letter, axis in zip(letters, dims or (), strict=False):
            known = axes.get(letter)
            if known is not None and axis is not None:
                meet(frame, "einsum", Tensor((known,)), Tensor((axis,)), node)
            axes[letter] = known or axis
    return Tensor(tuple(axes.get(letter) for letter in made)) if arrow else Tensor()
