"""The idle share: intervals by hand, and a profiler's trace."""

from __future__ import annotations

import pytest

from engine.observe.idle import device_intervals, union


def test_overlapping_work_counts_once() -> None:
    """Kernels that overlap on purpose must not look like more than all of the time."""
    found = union([(5000, 6000), (0, 1000), (500, 2000), (1500, 1600)])
    assert found.busy == pytest.approx(3)
    assert found.wall == pytest.approx(6)
    assert found.idle_share == pytest.approx(0.5)
    assert found.intervals == 4


def test_nothing_ran() -> None:
    assert union([]).idle_share == 0


def test_only_work_of_the_device_counts() -> None:
    trace = {
        "traceEvents": [
            {"ph": "X", "cat": "kernel", "ts": 10, "dur": 5},
            {"ph": "X", "cat": "gpu_memcpy", "ts": 20, "dur": 1},
            {"ph": "X", "cat": "gpu_user_annotation", "ts": 0, "dur": 90},
            {"ph": "X", "cat": "cuda_runtime", "ts": 0, "dur": 90},
            {"ph": "M", "name": "process_name"},
        ]
    }
    assert device_intervals(trace) == [(10, 15), (20, 21)]
