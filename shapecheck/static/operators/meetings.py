"""Axes that have to agree: elementwise operands, copies into buffers."""

from __future__ import annotations

import ast
from dataclasses import replace

from shapecheck.static.facts import EqualityTest, Meeting
from shapecheck.static.frames import Frame
from shapecheck.static.guards import hangs_on_mode, single_branch
from shapecheck.static.operators.arguments import WHOLE_DTYPES, axis_of
from shapecheck.static.ranks import note_ranked
from shapecheck.static.symbols import bounded
from shapecheck.static.values import UNKNOWN, Axis, Const, DType, Plain, Size, Tensor, Value
from shapecheck.static.wording import wording

_DIVISIONS = frozenset(["div", "true_divide"])
_COMPARISONS = {"compare", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"}


def broadcast(frame: Frame, operator: str, left: Plain, right: Plain, node: ast.expr) -> Value:
    """The elementwise result of two values; their axes meet."""
    if not isinstance(left, Tensor):
        left, right = right, left
    if not isinstance(left, Tensor):
        return UNKNOWN
    if not isinstance(right, Tensor):
        if operator in _COMPARISONS:
            return Tensor(left.dims, left.last, DType("bool"))
        if isinstance(right, (Const, Size)):
            dtype = left.dtype if _keeps_dtype(operator, left, right) else None
            return replace(left, dtype=dtype, total=_scaled(operator, left, right))
        # What is not known may be a tensor of a wider type.
        return Tensor(left.dims, left.last, None, left.owned)
    meet(frame, operator, left, right, node)
    dtype = DType("bool") if operator in _COMPARISONS else None
    if left.dims is None or right.dims is None:
        return Tensor(None, broadcast_axis(left.axis(-1), right.axis(-1)), dtype)
    return Tensor(broadcast_axes(left.dims, right.dims), dtype=dtype)


def _keeps_dtype(operator: str, left: Tensor, right: Const | Size) -> bool:
    """Whether a number leaves the dtype as it is: not a fraction an integer's, nor any a bool's."""
    if left.dtype is None or left.dtype.name not in WHOLE_DTYPES:
        return True
    fraction = isinstance(right, Const) and isinstance(right.value, float)
    return left.dtype.name != "bool" and not fraction and operator not in _DIVISIONS


def broadcast_axes(left: tuple[Axis, ...], right: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes of what two shapes that fit each other make together."""
    longer, shorter = sorted((left, right), key=len, reverse=True)
    kept = list(longer)
    for offset in range(1, len(shorter) + 1):
        kept[-offset] = broadcast_axis(longer[-offset], shorter[-offset])
    return tuple(kept)


def broadcast_axis(mine: Axis, theirs: Axis) -> Axis:
    """What two axes become that fit each other: one of literally 1 says nothing of the result."""
    if mine is None:
        return theirs if theirs is not None and theirs.poly.as_int() != 1 else None
    return theirs if mine.poly.as_int() == 1 else mine


def _scaled(operator: str, offsets: Tensor, by: Const | Size) -> Axis:
    """The total of offsets after every one of them was multiplied by a width."""
    width = axis_of(by)
    if offsets.total is None or width is None or operator not in ("mult", "mul"):
        return None
    poly = bounded(offsets.total.poly * width.poly)
    return None if poly is None else Size(poly, (*offsets.total.trail, *width.trail)[-12:])


def meet(
    frame: Frame,
    operator: str,
    left: Tensor,
    right: Tensor,
    node: ast.expr,
    *,
    fills: bool = False,
    cell: str = "",
    tested: EqualityTest | None = None,
) -> None:
    """Record that two tensors' axes have to agree here."""
    span = frame.module.span(node)
    if left.axis(0) is None or right.axis(0) is None:
        frame.machine.vague.add((span, frame.calls))
    if (_nothing_named(left) or _nothing_named(right)) and not _two_dtypes(left, right):
        return
    single = single_branch(frame.guards)
    key = (span, left, right, single)
    if key in frame.machine.facts.meetings:
        return
    frame.machine.ways.append((frame.machine.facts, key, frame.calls))
    frame.machine.facts.meetings[key] = Meeting(
        operator=operator,
        left=left,
        right=right,
        guards=tuple(frame.guards),
        span=span,
        cell=cell,
        where=frame.where,
        fills=fills,
        single_branch=single,
        moded=hangs_on_mode(frame.guards),
        tested=tested,
    )


def with_axis(tensor: Tensor, dim: int, axis: Axis) -> Tensor:
    """The tensor with another axis at `dim`; what is left where it has none there."""
    if tensor.dims is None:
        return replace(tensor, last=axis if dim == -1 else tensor.last, total=None)
    if not -len(tensor.dims) <= dim < len(tensor.dims):
        return Tensor(dtype=tensor.dtype)
    dims = list(tensor.dims)
    dims[dim] = axis
    return replace(tensor, dims=tuple(dims), total=None)


def without_axis(tensor: Tensor, dim: int) -> Tensor:
    """The axes with this one left open: it need not be as long in both."""
    return with_axis(Tensor(tensor.dims, tensor.last), dim, None)


def _two_dtypes(left: Tensor, right: Tensor) -> bool:
    owners = {one.dtype.owner for one in (left, right) if one.dtype is not None}
    return len(owners - {""}) == 2


def _nothing_named(tensor: Tensor) -> bool:
    axes = tensor.dims if tensor.dims is not None else (tensor.last,)
    return not any(axis and axis.poly.symbols() for axis in axes)


def fill(
    frame: Frame, into: Plain, source: Plain, target: ast.expr, given: ast.expr, node: ast.expr
) -> None:
    """Record that `source` is copied into the buffer `into`."""
    note_ranked(frame, target, given)
    if not isinstance(into, Tensor) or not isinstance(source, Tensor):
        return
    name = base_text(target)
    texts = {name, base_text(given)}
    tested = next((test for test in frame.tests if test.texts <= texts), None)
    meet(frame, "copy_", into, source, node, fills=True, cell=name, tested=tested)


def base_text(node: ast.expr) -> str:
    """The text of an expression without its slices: `b.x` of `b.x[:n]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return wording(node)
