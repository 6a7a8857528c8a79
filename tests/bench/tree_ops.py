"""tree_ops: the small operations between forwards, as torch code and as kernels, on one GPU.

python -m tests.bench.tree_ops --json tests/bench/results/tree_ops.json

Each operation runs eagerly and inside a CUDA graph; the two kinds take turns, so that a change of
the card's clock meets both. Times are medians in microseconds, the host's launches included where
they bound the eager ones. Laws are random over 128256 tokens; the target's is 0.8 of the draft's.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from statistics import median

import torch
import triton
from torch import Tensor

from engine.bench.replay import capture
from engine.ops import TreeOps
from engine.sampling import Stream
from engine.tree import first_level
from tests.unit.engine.drawn import DrawnBatch, drawn_batch

VOCAB, HIDDEN = 128256, 3 * 4096
SHAPES = ((1, 4, 5), (4, 3, 16), (8, 4, 60))
"""Branching, depth and verify width."""
ROWS = (1, 8, 32)
ROUNDS, CALLS = 9, 10

Op = Callable[[TreeOps], object]


def cases(
    shape: tuple[int, int, int], rows: int, *, vocab: int, hidden: int, device: str
) -> dict[str, Op]:
    """Every operation of an iteration of this shape, on inputs of its own."""
    topk, steps, width = shape
    generator = torch.Generator(device).manual_seed(rows)
    batch = _likely(
        drawn_batch(
            topk=topk, num_steps=steps, width=width, rows=rows, target_vocab=vocab, device=device
        )
    )
    lens = torch.arange(rows, device=device) + 100
    logits = torch.randn(rows * topk, vocab, generator=generator, device=device)
    law = logits.softmax(dim=1)
    coins = torch.rand(rows * topk, topk, generator=generator, device=device, dtype=torch.float64)
    top_k = torch.full((rows * topk,), 50, device=device)
    top_p, min_p = (
        torch.full_like(top_k, 0.9, dtype=torch.float32),
        torch.zeros(rows * topk).to(device),
    )
    levels, frontier, probs, tokens = _levels(topk, steps, rows, generator)
    choice = batch.tokens.gather(1, batch.structure.next_child.clamp(min=0))
    accepted = batch.along_links(TreeOps.torch().accept_tree)
    states = torch.zeros(rows, width, hidden, device=device, dtype=torch.bfloat16)
    table = torch.zeros(rows + 1, 2048, device=device, dtype=torch.int64)
    slots = torch.arange(1, rows * width + 1, device=device).view(rows, width)
    flat = batch.target.flatten(0, 1)
    node_coins = batch.accept.flatten()
    found: dict[str, Op] = {
        "argmax": lambda ops: ops.argmax(batch.target),
        "coins": lambda ops: ops.coins(lens, lens, Stream.ACCEPT, lanes=width),
        "draw": lambda ops: ops.draw(flat, node_coins),
        "choose_children": lambda ops: ops.choose_children(logits, topk=topk)[1],
        "draw_children": lambda ops: ops.draw_children(law, logits, coins),
        "truncate": lambda ops: ops.truncate(law, top_k, top_p, min_p),
        "build_tree": lambda ops: ops.build_tree(
            levels, lens, lens, topk=topk, num_draft_tokens=width, drawn=False
        ),
        "accept_greedy": lambda ops: ops.accept_greedy(
            batch.tokens, choice, batch.structure.tree_mask, accept_width=steps + 1
        ),
        "keep_path": lambda ops: ops.keep_path(
            table, req_rows_index=lens - 99, seq_lens=lens, slots=slots, predict=accepted.predict,
            accept_index=accepted.accept_index, accept_lens=accepted.accept_lens,
            hidden_states=states, shift=1,
        ),
    }  # fmt: skip
    if topk == 1:
        found["accept_chain"] = lambda ops: batch.along_links(ops.accept_chain)
    else:
        found["accept_tree"] = lambda ops: batch.along_links(ops.accept_tree)
    if steps > 1:
        found["next_level"] = lambda ops: ops.next_level(frontier, probs, tokens, step=1)[1]
    return found


def _likely(batch: DrawnBatch) -> DrawnBatch:
    """The batch with a target that accepts a child with a probability of 0.8 at least."""
    return replace(batch, target=0.8 * batch.law.probs + 0.2 * batch.target)


def _levels(topk: int, steps: int, rows: int, generator: torch.Generator) -> tuple:
    """All levels of a tree, and a frontier with the children of its nodes."""
    ops, device = TreeOps.torch(), generator.device

    def some(*sizes: int) -> tuple[Tensor, Tensor]:
        probs = torch.rand(sizes, generator=generator, device=device)
        return probs, torch.randint(9, sizes, generator=generator, device=device)

    level, frontier = first_level(*some(rows, topk))
    first, levels = frontier, [level]
    probs, tokens = some(rows * topk, topk)
    for step in range(1, steps):
        level, frontier = ops.next_level(frontier, *some(rows * topk, topk), step=step)
        levels.append(level)
    return levels, first, probs, tokens


def same(first: object, second: object) -> bool:
    """Whether two results hold equal tensors."""
    if isinstance(first, Tensor):
        return torch.equal(first, second)  # type: ignore[arg-type]
    if is_dataclass(first):
        return all(
            same(getattr(first, one.name), getattr(second, one.name)) for one in fields(first)
        )
    return first == second


def measure(op: Op) -> dict[str, object]:
    """Medians of both kinds, eager and replayed, and whether their results are equal."""
    kinds = {"torch": TreeOps.torch(), "triton": TreeOps.triton()}
    equal = same(op(kinds["torch"]), op(kinds["triton"]))
    runs: dict[tuple[str, str], Callable[[], object]] = {}
    for name, ops in kinds.items():
        runs[name, "eager"] = lambda ops=ops: op(ops)
        runs[name, "graph"] = capture(lambda ops=ops: op(ops)).replay
    spans: dict[tuple[str, str], list[float]] = {key: [] for key in runs}
    for _ in range(ROUNDS):
        for key, run in runs.items():
            spans[key].append(_microseconds(run))
    found: dict[str, object] = {"same": equal}
    for name in kinds:
        found[name] = {way: median(spans[name, way]) for way in ("eager", "graph")}
    return found


def _microseconds(run: Callable[[], object]) -> float:
    """One call's share of several in a row."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    run()
    begin.record()
    for _ in range(CALLS):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / CALLS * 1e3


def run(*, command: str, write: Callable[[dict[str, object]], None]) -> None:
    """Hands over the report whenever a size is complete."""
    sizes: dict[str, object] = {}
    report: dict[str, object] = {
        "card": torch.cuda.get_device_name(),
        "versions": {
            "torch": torch.__version__,
            "triton": triton.__version__,
            "python": platform.python_version(),
        },
        "date": time.strftime("%Y-%m-%d"),
        "command": command,
        "vocab": VOCAB,
        "hidden": HIDDEN,
        "unit": "microseconds a call, median",
        "sizes": sizes,
    }
    for shape in SHAPES:
        for rows in ROWS:
            topk, steps, width = shape
            name = f"B={rows} K={topk} S={steps} N={width}"
            found = {
                op: measure(case)
                for op, case in cases(
                    shape, rows, vocab=VOCAB, hidden=HIDDEN, device="cuda"
                ).items()
            }
            sizes[name] = found
            for op, numbers in found.items():
                print(f"{name:22} {op:16} {json.dumps(numbers)}", flush=True)
            write(report)
            torch.cuda.empty_cache()


def main() -> None:
    """Measures, prints a table and writes JSON if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="where to write the report")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no CUDA device; run this on a machine that has one")

    def write(report: dict[str, object]) -> None:
        if arguments.json:
            arguments.json.write_text(json.dumps(report, indent=2) + "\n")

    named = [] if arguments.json is None else ["--json", arguments.json.name]
    run(command=" ".join(["python -m tests.bench.tree_ops", *named]), write=write)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
