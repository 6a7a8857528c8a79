"""Tensors for tests: their values keep what `ids` and `indexes` say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shapecheck.dims.model import Dims
from shapecheck.errors import ShapecheckError
from shapecheck.runtime.tensors import dtype_names
from shapecheck.spec import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


class NothingToIndexError(ShapecheckError):
    """An index has elements, its axis has no positions, and there is no pad for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filler:
    """Fills tensors of one carrier or one call, the same for the same generator."""

    dims: Dims
    device: str
    generator: torch.Generator

    def filled(
        self, spec: TensorSpec, shape: Sequence[int], positions: int | None, path: str
    ) -> torch.Tensor:
        """A tensor of this shape, its marked values below `positions`, where that is known.

        Raises NothingToIndexError where no value keeps the mark.
        """
        if any(size < 0 for size in shape):
            sizes = _sizes(spec, shape)
            raise ShapecheckError(f"make: {path} is [{sizes}]; give sizes that leave none below 0")
        try:
            return self._filled(spec, shape, positions, path)
        except (RuntimeError, TypeError, MemoryError, OverflowError) as error:
            said, sizes = str(error).partition("\n")[0], _sizes(spec, shape)
            raise ShapecheckError(
                f"make: {path} is [{sizes}], which torch does not make ({said}); give smaller sizes"
            ) from error

    def _filled(
        self, spec: TensorSpec, shape: Sequence[int], positions: int | None, path: str
    ) -> torch.Tensor:
        import torch

        dtype = _dtype(spec, self.dims)
        if positions is not None:
            return self._positions(spec, shape, positions, path).to(dtype)
        if dtype.is_floating_point:
            normal = torch.randn(shape, device=self.device, generator=self.generator)
            return normal.to(dtype)
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def _positions(
        self, spec: TensorSpec, shape: Sequence[int], positions: int, path: str
    ) -> torch.Tensor:
        import torch

        info = torch.iinfo(_dtype(spec, self.dims))
        if positions < 1 and 0 not in shape:
            if spec.pad is None or spec.pad < info.min:
                raise NothingToIndexError(
                    f"make: {path} holds positions along {spec.indexes}, which is {positions} "
                    "here, so no value is one; give it a size of 1 or more, no rows that index it, "
                    "or mark a pad"
                )
            return torch.full(shape, spec.pad, dtype=torch.int64, device=self.device)
        high = max(1, min(positions, info.max + 1, torch.iinfo(torch.int64).max))
        return torch.randint(high, shape, device=self.device, generator=self.generator)


def _sizes(spec: TensorSpec, shape: Sequence[int]) -> str:
    named = zip(spec.shape.axes, shape, strict=True)
    return ", ".join(f"{axis}={size}" for axis, size in named)


def _dtype(spec: TensorSpec, dims: Dims) -> torch.dtype:
    import torch

    names = dtype_names(spec, dims)
    if spec.indexes is not None:
        whole = [name for name in _WHOLE if names is None or name in names]
        if whole:
            return getattr(torch, whole[0])
    if names is None or "float32" in names:
        return torch.float32
    if "int64" in names:
        return torch.int64
    return next(getattr(torch, name) for name in names if hasattr(torch, name))


# The widest first: it holds the most positions.
_WHOLE = ("int64", "int32", "int16", "uint64", "uint32", "uint16", "uint8", "int8")
