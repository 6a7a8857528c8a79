"""Memory that is taken once when an engine is built: zeros, or an error that says what to lower."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.errors import EngineError


def zeros(
    shape: Sequence[int], *, dtype: torch.dtype, device: torch.device | str, what: str
) -> Tensor:
    """Zeros of this shape; EngineError when the device has no room for them."""
    size = math.prod(shape) * dtype.itemsize
    try:
        # A host that overcommits hands out what it has not, and ends the process at first use.
        if torch.device(device).type == "cpu" and size > _host_memory():
            raise MemoryError
        return torch.zeros(*shape, dtype=dtype, device=device)
    except (MemoryError, RuntimeError) as error:  # a full host and a full GPU alike
        raise EngineError(
            f"{what} of shape {tuple(shape)} takes {size / 2**30:.1f} GiB, which {device} cannot "
            "give; lower max_requests, max_context or num_slots"
        ) from error


def _host_memory() -> float:
    """Bytes of memory that this host has, whoever uses them; infinite where nobody says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf
