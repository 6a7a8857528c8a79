"""The way of a size from where it was read, one step longer at every hand-over."""

from __future__ import annotations

from shapecheck.static.symbols import Step
from shapecheck.static.unions import lift
from shapecheck.static.values import Axis, DType, Plain, Size, Tensor, Union, Value


def has_trail(value: Value) -> bool:
    """Whether a value may hold sizes, whose way `with_step` would make longer."""
    return isinstance(value, (Union, Size, Tensor, DType))


def with_step(value: Value, step: Step) -> Value:
    """The value with one more station on the way of every size it holds."""

    def extend(plain: Plain) -> Value:
        if isinstance(plain, Size) and plain.poly.symbols():
            return Size(plain.poly, (*plain.trail, step)[-12:])
        if isinstance(plain, DType) and plain.owner:
            return DType(plain.name, plain.owner, (*plain.trail, step)[-12:])
        if isinstance(plain, Tensor):
            if plain.dims is None and plain.last is None and plain.total is None:
                return plain
            return Tensor(
                None if plain.dims is None else tuple(_axis(axis, step) for axis in plain.dims),
                _axis(plain.last, step),
                plain.dtype,
                plain.owned,
                plain.ids,
                _axis(plain.total, step),
            )
        return plain

    return lift(extend, value)


def _axis(axis: Axis, step: Step) -> Axis:
    if axis is None or not axis.poly.symbols():
        return axis
    return Size(axis.poly, (*axis.trail, step)[-12:])
