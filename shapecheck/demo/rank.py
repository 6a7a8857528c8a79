"""One rank of the miniature, run as a process of its own so that SHAPECHECK holds from its import.

`python -m shapecheck.demo.rank mistaken|healthy`: the healthy rank prints what it measured, JSON.
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
    dims = Dims.from_configs(
        _CONFIGS / "target", _CONFIGS / "draft", algorithm="eagle", num_steps=3
    )
    target = TargetWorker(dims)
    draft = MistakenDraftWorker(dims) if kind == "mistaken" else DraftWorker(dims)
    with torch.inference_mode():
        batch = arrive(target, draft, _REQUESTS)
        seconds, tokens = _measure(target, draft, batch)
    json.dump({"seconds": seconds, "tokens": tokens, "requests": _REQUESTS}, sys.stdout)


def _measure(
    target: TargetWorker, draft: DraftWorker, batch: ExtendInput
) -> tuple[float, list[int]]:
    """Seconds of this thread per iteration in the quietest block, and the tokens of each block."""
    best, tokens = float("inf"), list[int]()
    for _ in range(_BLOCKS):
        written = 0
        start = time.thread_time()
        for _ in range(_BLOCK):
            verified = iterate(target, draft, batch)
            batch = verified.next_input
            written += int(verified.accept_lens.sum())
        best = min(best, (time.thread_time() - start) / _BLOCK)
        tokens.append(written)
    return best, tokens


if __name__ == "__main__":
    main(sys.argv[1])
