"""One rank of the miniature, run as a process of its own so that SHAPECHECK holds from its import.

`python -m shapecheck.demo.rank serve mistaken|healthy` serves a few prompts;
`python -m shapecheck.demo.rank cost` prints seconds per iteration, off and strict, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch

from shapecheck import Dims, enable
from shapecheck.demo import worker
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
_ITERATIONS = 20
_WARM_UP = 5
_ROUNDS = 40


def read_dims() -> Dims:
    """The Dims of the miniature's two configs, which have different hidden sizes."""
    return Dims.from_configs(
        _CONFIGS / "target", _CONFIGS / "draft", algorithm="eagle", num_steps=3
    )


def serve(kind: str) -> None:
    """Serve a few prompts; the mistaken worker does not survive their arrival."""
    dims = read_dims()
    target = TargetWorker(dims)
    draft = MistakenDraftWorker(dims) if kind == "mistaken" else DraftWorker(dims)
    _run(target, draft, arrive(target, draft, _REQUESTS), _ITERATIONS)


def cost() -> dict[str, float]:
    """Seconds of the healthy worker's quickest iteration at each level.

    The levels take turns in one process, and the quickest of many iterations is the one that
    nothing else on the machine disturbed: means of the two would differ by more than a contract.
    """
    dims = read_dims()
    target, draft = TargetWorker(dims), DraftWorker(dims)
    batch = arrive(target, draft, _REQUESTS)
    best = {"off": float("inf"), "strict": float("inf")}
    for _ in range(_ROUNDS):
        for level in best:
            with _contracts(level):
                batch = _run(target, draft, batch, _WARM_UP)
                for _ in range(_ITERATIONS):
                    start = time.thread_time()
                    batch = iterate(target, draft, batch).next_input
                    best[level] = min(best[level], time.thread_time() - start)
    return best


def _contracts(level: str) -> AbstractContextManager[object]:
    return enable(worker, level=level) if level != "off" else nullcontext()


def _run(target: TargetWorker, draft: DraftWorker, batch: ExtendInput, times: int) -> ExtendInput:
    for _ in range(times):
        batch = iterate(target, draft, batch).next_input
    return batch


def main(what: str, kind: str = "healthy") -> None:
    """One rank, from its first import to its last iteration."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]  # torch leaves it untyped
    with torch.inference_mode():
        if what == "cost":
            json.dump(cost(), sys.stdout)
        else:
            serve(kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
