"""Idle: the share of time in which a device runs nothing, by its profiler's kernel intervals."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

# What the profiler calls work of the device; ranges that name other work are not among it.
_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Milliseconds: `busy` counts overlapping work once, `wall` is from first to last work."""

    busy: float
    wall: float
    intervals: int

    @property
    def idle_share(self) -> float:
        """The share of `wall` in which nothing ran; the profiler's own delays are in it."""
        return 1 - self.busy / self.wall if self.wall else 0.0


def device_busy(run: Callable[[], object]) -> Busy:
    """What the CUDA device did for `run`, from its first launch to the end of its last."""
    torch.cuda.synchronize()
    kinds = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        return union(device_intervals(json.loads(path.read_text(encoding="utf-8"))))


def device_intervals(trace: Any) -> list[Interval]:
    """Begin and end, in microseconds, of everything that a profiler's trace says the device ran."""
    return [
        (float(event["ts"]), float(event["ts"]) + float(event["dur"]))
        for event in trace["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") in _WORK
    ]


def union(intervals: Sequence[Interval]) -> Busy:
    """How long at least one of these intervals, in microseconds, lasted."""
    busy, reached = 0.0, float("-inf")
    ordered = sorted(intervals)
    for start, end in ordered:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    wall = reached - ordered[0][0] if ordered else 0.0
    return Busy(busy=busy / 1e3, wall=wall / 1e3, intervals=len(ordered))
