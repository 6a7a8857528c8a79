"""The real kernel, run once on small tensors: what it refuses that a fake one takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch

from shapecheck.symbolic.operands import leaves
from shapecheck.symbolic.shape_env import is_refusal, without_modes

# Real operands are small, or the kernel is not asked.
_LARGEST = 1 << 22
# A kernel that this device lacks may be there on another.
_MISSING = "not implemented for"
# Nor does a machine without the memory, or without a device to pin it for, say anything, nor a
# library that this device computes with.
_UNABLE = ("can't allocate", "DefaultCPUAllocator", "pinned memory", "pin_memory", "MKL")
Arguments = tuple[Any, ...]
Keywords = Mapping[str, Any]
SizeOf = Callable[[int], int]
Dtypes = Mapping[torch.dtype, torch.dtype]
_AS_THEY_ARE: Dtypes = {}


def refusal(
    func: Callable[..., object],
    args: Arguments,
    kwargs: Keywords,
    size_of: SizeOf,
    result: object = (),
    *,
    lacking: bool = False,
    dtypes: Dtypes = _AS_THEY_ARE,
) -> str | None:
    """What the kernel says when it refuses real operands of these sizes; None when it does not.

    With `lacking` a dtype that this device has no kernel for is refused too; `dtypes` says which
    take the place of others.
    """
    said: str | None = None
    with without_modes():
        for fill in (0, 1):
            try:
                real = _real((args, dict(kwargs)), size_of, fill, result, dtypes)
                if real is None:
                    return None
                func(*real[0], **real[1])
            except Exception as error:
                said = str(error).strip().partition("\n")[0]
                if any(text in str(error) for text in _UNABLE):
                    return None
                if not lacking and _lacks(error):
                    return None
                if not (is_refusal(error) or _lacks(error)):
                    return None
            else:
                return None
    return said


def takes(func: Callable[..., object], args: Arguments, kwargs: Keywords, size_of: SizeOf) -> bool:
    """Whether the kernel takes real operands of these sizes, of zeros or of ones."""
    with without_modes():
        for fill in (0, 1):
            real = _real((args, dict(kwargs)), size_of, fill, (), _AS_THEY_ARE)
            if real is None:
                return False
            try:
                func(*real[0], **real[1])
            except Exception as error:
                if not (is_refusal(error) or _lacks(error)):
                    return False
            else:
                return True
    return False


def _lacks(error: Exception) -> bool:
    return isinstance(error, NotImplementedError) or _MISSING in str(error)


def _real(given: object, size_of: SizeOf, fill: int, result: object, dtypes: Dtypes) -> Any:
    """The same arguments with real tensors; None when there is something that cannot be real."""
    total = 0
    for leaf in leaves((given, result)):
        if isinstance(leaf, torch.Tensor):
            total += math.prod(map(size_of, leaf.shape))
        elif isinstance(leaf, int):
            total = max(total, leaf)  # it may be a size
        elif isinstance(leaf, torch.SymFloat | torch.SymBool):
            return None
    return _made(given, size_of, fill, dtypes) if total <= _LARGEST else None


def _made(value: object, size_of: SizeOf, fill: int, dtypes: Dtypes) -> object:
    if isinstance(value, torch.Tensor):
        dtype = dtypes.get(value.dtype, value.dtype)
        return torch.full([size_of(size) for size in value.shape], fill, dtype=dtype)
    if isinstance(value, torch.SymInt):
        return size_of(cast(int, value))
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        made = [_made(item, size_of, fill, dtypes) for item in items]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)
        return {
            name: _made(item, size_of, fill, dtypes)
            for name, item in named.items()
            if name != "pin_memory"
        }
    return torch.device("cpu") if isinstance(value, torch.device) else value
