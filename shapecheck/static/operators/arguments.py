"""Reading the arguments of an operator: axes, shapes, dtypes, the axis it works along."""

from __future__ import annotations

from collections.abc import Sequence as Items

from shapecheck.dims.expr import Poly
from shapecheck.static.values import (
    Axis,
    Const,
    DType,
    External,
    Plain,
    Sequence,
    Shape,
    Size,
    Tensor,
    Union,
    Value,
)

Arguments = Items[Plain]
Keywords = dict[str, Plain]


_SAME_DTYPE = {
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "float": "float32",
    "double": "float64",
    "half": "float16",
}


def axis_of(value: Plain) -> Axis:
    """The axis that an integer argument makes, or None when it is not known."""
    if isinstance(value, Size):
        return value
    if isinstance(value, Const) and isinstance(value.value, int):
        return Size(Poly.constant(int(value.value)))
    return None


def _axes(values: Items[Value]) -> tuple[Axis, ...]:
    return tuple(None if isinstance(value, Union) else axis_of(value) for value in values)


def shape_argument(values: Items[Value]) -> tuple[Axis, ...] | None:
    """The axes that `(a, b)` or `((a, b),)` says, or None."""
    if len(values) == 1:
        only = values[0]
        if isinstance(only, Sequence):
            return _axes(only.items)
        if isinstance(only, Shape):
            return only.tensor.dims
        if isinstance(only, Union) or axis_of(only) is None:
            return None
    return _axes(values)


def dtype_argument(value: Plain | None) -> DType | None:
    """The dtype that `dtype=` says, or None."""
    if isinstance(value, DType):
        return value
    if isinstance(value, External) and value.name.startswith(("torch.", "numpy.")):
        name = value.name.partition(".")[2]
        return DType(_SAME_DTYPE.get(name, name))
    return None


def tensor_of(args: Arguments, index: int = 0) -> Tensor | None:
    value = args[index] if len(args) > index else None
    return value if isinstance(value, Tensor) else None


def dim_argument(args: Arguments, keywords: Keywords, position: int = 1) -> int | None:
    value = keywords.get("dim", keywords.get("axis"))
    if value is None and len(args) > position:
        value = args[position]
    if isinstance(value, Const) and isinstance(value.value, int):
        return int(value.value)
    return None
