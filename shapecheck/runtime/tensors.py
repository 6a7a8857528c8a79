"""What a message says of a value, read without its data: shape, dtype, device, class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapecheck.dims.model import Dims
from shapecheck.errors import ShapecheckError
from shapecheck.spec.model import TensorSpec

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Facts:
    """Shape, dtype name and device of a tensor."""

    shape: tuple[int, ...]
    dtype: str
    device: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(size) for size in self.shape)}] on {self.device}"


def facts_of(tensor: Tensor) -> Facts:
    """The facts of a tensor; its values are not read."""
    return Facts(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), str(tensor.device))


def dtype_names(spec: TensorSpec, dims: Dims | None) -> tuple[str, ...] | None:
    """The dtype names a spec admits under these Dims; None admits any.

    Raises ShapecheckError when the spec says a model's dtype and Dims has none, or one that
    contradicts the annotation.
    """
    if spec.dtype_of is None or dims is None:
        return spec.dtypes
    name = dims.target_dtype if spec.dtype_of == "target" else dims.draft_dtype
    if name is None:
        raise ShapecheckError(
            f"dtype({spec.dtype_of!r}) in {spec.kind}[{spec.shape.text}]: Dims has no "
            f"{spec.dtype_of}_dtype; set it, or build Dims from both configs"
        )
    if spec.dtypes is not None and name not in spec.dtypes:
        raise ShapecheckError(
            f"dtype({spec.dtype_of!r}) is {name}, which {spec.kind}[{spec.shape.text}] excludes; "
            "write Float[...] and let the marker choose"
        )
    return (name,)


def class_name(value: object) -> str:
    """`None`, or the class of a value: never its repr, which would read a tensor's data."""
    if value is None:
        return "None"
    cls = type(value)
    return (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )
