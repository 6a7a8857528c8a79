"""Card: the two ceilings of a device, measured, that every step is held against."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.bench.replay import capture, replay_ms

_CUDA_BYTES, _CPU_BYTES = 2**33, 2**26
_CUDA_SIDE, _CPU_SIDE = 8192, 512
# Programs, and what each of them reads at a time: the best of these counts.
_PROGRAMS = (2**11, 2**12, 2**13, 2**14, 2**15)
_BLOCKS = ((2048, 4, 1), (4096, 8, 1), (4096, 4, 4), (8192, 8, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Bytes and floating-point operations per second; a multiply-add counts as two."""

    name: str
    bandwidth: float
    rate: float

    @property
    def ridge(self) -> float:
        """Operations per byte at which reading and computing take equally long."""
        return self.rate / self.bandwidth


def measured_card(device: torch.device, dtype: torch.dtype) -> Card:
    """The device's best read bandwidth, and its rate in a large square product of this dtype."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            name = torch.cuda.get_device_name(device)
            return Card(name=name, bandwidth=_cuda_bandwidth(), rate=_cuda_rate(dtype))
    return Card(name="cpu", bandwidth=_cpu_bandwidth(), rate=_cpu_rate(dtype))


def _cuda_bandwidth() -> float:
    from engine.kernels.read import read_words

    # Random words: zeros are easier to move.
    x = torch.randint(-(2**31), 2**31 - 1, (_CUDA_BYTES // 4,), dtype=torch.int32, device="cuda")
    best = float("inf")
    for programs in _PROGRAMS:
        y = torch.empty(programs, dtype=torch.int32, device="cuda")
        for block, warps, stages in _BLOCKS:

            def run(y=y, block=block, warps=warps, stages=stages) -> None:  # type: ignore[no-untyped-def]  # bound now
                read_words(x, out_P=y, block=block, warps=warps, stages=stages)

            best = min(best, replay_ms(capture(run), repeats=5))
    return _CUDA_BYTES / best * 1e3


def _cuda_rate(dtype: torch.dtype) -> float:
    left, right = (torch.randn(_CUDA_SIDE, _CUDA_SIDE, device="cuda", dtype=dtype) for _ in "ab")
    ms = replay_ms(capture(lambda: left @ right), repeats=10)
    return 2 * _CUDA_SIDE**3 / ms * 1e3


def _cpu_bandwidth() -> float:
    x = torch.rand(_CPU_BYTES // 4)
    return _CPU_BYTES / _best_seconds(x.sum)


def _cpu_rate(dtype: torch.dtype) -> float:
    left, right = (torch.randn(_CPU_SIDE, _CPU_SIDE).to(dtype) for _ in "ab")
    return 2 * _CPU_SIDE**3 / _best_seconds(lambda: left @ right)


def _best_seconds(run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
