"""Shapes as code reads them: `x.shape[1:]`, `*x.shape`."""

from __future__ import annotations

import ast

from shapecheck.static.frames import Frame
from shapecheck.static.values import UNKNOWN, Axis, Const, Sequence, Shape, Value


def cut_shape(frame: Frame, shape: Shape, cut: ast.Slice) -> Value:
    """The axes of a slice of a shape, where they and the bounds are known."""
    bounds: list[int | None] = []
    for bound in (cut.lower, cut.upper, cut.step):
        number = None if bound is None else literal_int(frame.machine.evaluate(frame, bound))
        if bound is not None and number is None:
            return UNKNOWN
        bounds.append(number)
    dims = shape.tensor.dims
    if dims is None or bounds[2] == 0:
        return UNKNOWN
    return Sequence(axes_as_values(dims[slice(*bounds)]))


def axes_as_values(axes: tuple[Axis, ...]) -> tuple[Value, ...]:
    """Axes as the integers that code sees."""
    return tuple(axis or UNKNOWN for axis in axes)


def unpacked_shape(shape: Shape, count: int) -> tuple[Value, ...]:
    """The axes of a shape that is unpacked to so many names, known or not."""
    tensor = shape.tensor
    if tensor.dims is not None:
        return axes_as_values(tensor.dims)
    return (*(UNKNOWN,) * (count - 1), tensor.last or UNKNOWN)


def literal_int(value: Value) -> int | None:
    """The integer of a literal, else None."""
    if isinstance(value, Const) and isinstance(value.value, int):
        return int(value.value)
    return None
