"""Memory that is taken once when an engine is built: zeros, or an error that says what to lower."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.errors import EngineError


def zeros(
    shape: Sequence[int], *, dtype: torch.dtype, device: torch.device | str, what: str
) -> Tensor:
    """Zeros of this shape; EngineError when the device has no room for them."""
    try:
        return torch.zeros(*shape, dtype=dtype, device=device)
    except RuntimeError as error:  # a full host and a full GPU alike
        size = math.prod(shape) * dtype.itemsize / 2**30
        raise EngineError(
            f"{what} of shape {tuple(shape)} takes {size:.1f} GiB, which {device} cannot give; "
            "lower max_requests, max_context or num_slots"
        ) from error
