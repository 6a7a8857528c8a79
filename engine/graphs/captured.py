"""Captured: forwards as CUDA graphs, one for each bucket, in one memory pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from engine.graphs.runner import Bucket, Buffers, Live, Out, Replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured(Replayed):
    """Captures when a forward is wrapped, so that the first request waits for nothing.

    Every graph takes its memory from the same pool. That is safe because no output is read once
    another graph has run: the live rows are cloned out right after a replay. The outputs of each
    bucket stay allocated: where candidates are drawn, N laws over the draft's vocabulary a row, in
    the plain and in the truncating loop (at N = 16 and 128256 tokens 1 GB for buckets up to 32).
    """

    pool: tuple[int, int] = field(default_factory=torch.cuda.graph_pool_handle)

    def bucket(
        self, forward: Callable[[Live], Out], static: Buffers, size: int
    ) -> Bucket[Live, Out]:
        with torch.cuda.device(self.device):
            return CapturedBucket(forward, static, size, pool=self.pool)


class CapturedBucket(Bucket[Live, Out]):
    """A bucket whose forward is one launch."""

    def __init__(
        self,
        forward: Callable[[Live], Out],
        buffers: Buffers,
        size: int,
        *,
        pool: tuple[int, int],
    ) -> None:
        super().__init__(forward, buffers, size)
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode():
            self._warm_up()
            with torch.cuda.graph(self.graph, pool=pool):
                self.outputs = self._run()

    def _warm_up(self) -> None:
        """Kernels are compiled and libraries have their workspaces: neither can be captured."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._run()
        torch.cuda.current_stream().wait_stream(side)

    def replay(self) -> None:
        self.graph.replay()

    def _run(self) -> Out:
        # The buffers have the fields of the live carrier, which is all the forward reads.
        return self.forward(self.buffers)  # pyright: ignore[reportArgumentType]
