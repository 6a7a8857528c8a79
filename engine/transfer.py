"""Copies between host and device that do not wait for the device.

A copy from pageable memory may wait until the stream has run dry, and reading a result always
does. Both would leave the device without work between two iterations.
"""

from __future__ import annotations

import torch
from torch import Tensor


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """`values`, made on the host a moment ago, on the device: in stream order, not waited for."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


class HostCopy:
    """A result on its way to the host: begun at once, waited for when it is read.

    What is launched between the two runs on the device meanwhile.
    """

    def __init__(self, result: Tensor) -> None:
        self._arrived: torch.cuda.Event | None = None
        self._values = result
        if result.is_cuda:
            self._values = torch.empty_like(result, device="cpu", pin_memory=True)
            self._values.copy_(result, non_blocking=True)
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    def tolist(self) -> list[list[int]]:
        """The values, waiting for what was launched before the copy and for nothing after it."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._values.tolist()
