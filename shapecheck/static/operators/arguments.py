"""Reading the arguments of an operator: axes, shapes, dtypes, the axis it works along."""

from __future__ import annotations

from collections.abc import Sequence as Items

from shapecheck.dims.expr import Poly
from shapecheck.static.symbols import SizePoly, bounded
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
# Methods that are named after the type they give.
_CASTS = {**_SAME_DTYPE, "bool": "bool", "bfloat16": "bfloat16"}
# Sums and products of these are int64.
_NARROW = frozenset(["bool", "uint8", "int8", "int16", "int32"])
WHOLE_DTYPES = _NARROW | {"int64"}
# What they make of whole numbers has the default float type, and of truth values a number's.
_OF_REALS = frozenset(
    [
        "exp",
        "log",
        "log2",
        "log1p",
        "sqrt",
        "rsqrt",
        "sigmoid",
        "tanh",
        "logsumexp",
        "mean",
        "norm",
        "std",
        "var",
    ]
)
_OF_NUMBERS = frozenset(["abs", "neg", "clamp", "clamp_min", "clamp_max", "sign"])
_WIDENS = frozenset(["sum", "prod", "cumsum", "cumprod"])


def axis_of(value: Plain) -> Axis:
    """The axis that an integer argument makes, or None when it is not known."""
    if isinstance(value, Size):
        return value
    if isinstance(value, Const) and isinstance(value.value, int):
        number: SizePoly | None = bounded(Poly.constant(int(value.value)))
        return None if number is None else Size(number)
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


def cast_dtype(source: Tensor, name: str, rest: Arguments, keywords: Keywords) -> DType | None:
    """The dtype of what an operator of this name makes of a tensor whose shape it keeps or drops.

    `rest` are the arguments behind the tensor.
    """
    if "dtype" in keywords:
        return dtype_argument(keywords["dtype"])
    if name in _CASTS:
        return DType(_CASTS[name])
    if name in ("to", "type", "type_as"):
        for one in rest:
            stated = one.dtype if isinstance(one, Tensor) else dtype_argument(one)
            if stated is not None:
                return stated
    if source.dtype is not None:
        if name in _WIDENS and source.dtype.name in _NARROW:
            return DType("int64")
        if name in _OF_REALS and source.dtype.name in WHOLE_DTYPES:
            return None
        if name in _OF_NUMBERS and source.dtype.name == "bool":
            return None
    return source.dtype


def multiplied_dtype(source: Tensor, weight: Tensor | None) -> DType | None:
    """The dtype of a product, whose sides have one: a model's only where the weight's is known."""
    if source.dtype is None or not source.dtype.owner:
        return source.dtype
    return weight.dtype if weight is not None else None


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
