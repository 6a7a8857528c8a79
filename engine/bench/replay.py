"""Replay: CUDA graphs of a run, timed with device events."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch


def capture(run: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """A graph of one run, after a warm-up outside it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def replay_ms(graph: torch.cuda.CUDAGraph, repeats: int = 20) -> float:
    """The median milliseconds of a replay."""
    for _ in range(3):
        graph.replay()
    spans: list[float] = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        spans.append(begin.elapsed_time(end))
    return median(spans)
