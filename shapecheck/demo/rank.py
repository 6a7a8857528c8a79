"""One rank of the miniature, run as a process of its own so that SHAPECHECK holds from its import.

`python -m shapecheck.demo.rank mistaken|healthy`; the healthy one prints seconds per iteration.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from shapecheck import Dims
from shapecheck.demo.worker import (
    DraftWorker,
    ExtendInput,
    MistakenDraftWorker,
    TargetWorker,
    arrive,
    iterate,
)

_CONFIGS = Path(__file__).with_name("configs")
_REQUESTS = 8
_BLOCKS, _BLOCK = 40, 20


def main(kind: str) -> None:
    """Serve a few prompts; the mistaken worker does not survive their arrival."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]  # torch leaves it untyped
    dims = read_dims()
    target = TargetWorker(dims)
    draft = MistakenDraftWorker(dims) if kind == "mistaken" else DraftWorker(dims)
    with torch.inference_mode():
        batch = arrive(target, draft, _REQUESTS)
        seconds = _seconds_per_iteration(target, draft, batch)
    json.dump({"seconds": seconds}, sys.stdout)


def read_dims() -> Dims:
    """The Dims of the miniature's two configs, which have different hidden sizes."""
    return Dims.from_configs(
        _CONFIGS / "target", _CONFIGS / "draft", algorithm="eagle", num_steps=3
    )


def _seconds_per_iteration(target: TargetWorker, draft: DraftWorker, batch: ExtendInput) -> float:
    """Seconds of this thread's time in the quietest of some blocks of iterations."""
    best = float("inf")
    for _ in range(_BLOCKS):
        start = time.thread_time()
        for _ in range(_BLOCK):
            batch = iterate(target, draft, batch).next_input
        best = min(best, (time.thread_time() - start) / _BLOCK)
    return best


if __name__ == "__main__":
    main(sys.argv[1])
