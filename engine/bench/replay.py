"""timing: graph replays timed with device events, and the card's read bandwidth."""

from collections.abc import Callable
from statistics import median

import torch
import triton
import triton.language as tl


def capture(run: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """Returns a graph of one run, after a warm-up outside it."""
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
    """Returns the median milliseconds of a replay."""
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


@triton.jit
def _read(x_ptr, y_ptr, per_program, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * per_program
    total = tl.zeros((BLOCK,), tl.int32)
    for start in tl.range(0, per_program, BLOCK, num_stages=STAGES):
        total ^= tl.load(x_ptr + base + start + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.program_id(0), tl.xor_sum(total, axis=0))


def read_bandwidth(gibibytes: int = 8) -> float:
    """Returns the best GB/s at which a kernel reads random words from device memory."""
    words = gibibytes * 2**28
    x = torch.randint(-(2**31), 2**31 - 1, (words,), dtype=torch.int32, device="cuda")
    best = float("inf")
    for programs in (2**11, 2**12, 2**13, 2**14, 2**15):
        y = torch.empty(programs, dtype=torch.int32, device="cuda")
        for block, warps, stages in ((2048, 4, 1), (4096, 8, 1), (4096, 4, 4), (8192, 8, 4)):

            def run(y=y, block=block, warps=warps, stages=stages, programs=programs) -> None:
                _read[(programs,)](
                    x, y, words // programs, BLOCK=block, STAGES=stages, num_warps=warps
                )

            best = min(best, replay_ms(capture(run), repeats=5))
    return words * 4 / best / 1e6
