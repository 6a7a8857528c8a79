"""gpu_step: how near a decode step is to the time its bytes take to read, on one GPU.

python -m tests.bench.gpu_step --json tests/bench/results/gpu_step.json

Everything runs in CUDA graphs with random bf16 weights and 1024 committed tokens. The read
bandwidth is measured in the same run; a step's share is its least bytes over its time over that
bandwidth.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
import triton
from torch import Tensor

from engine.bench.card import measured_card
from engine.bench.replay import capture, replay_ms
from tests.bench.fused_step import FusedStep, choose_tiles
from tests.bench.peer_steps import PeerStep
from tests.bench.shapes import LLAMA_1B, LLAMA_8B, Shape, Weights, random_weights

CONTEXT = 1024
Numbers = dict[str, float]


def relative_error(result: Tensor, reference: Tensor) -> float:
    """The norm of the difference over the norm of the reference."""
    return float((result.double() - reference.double()).norm() / reference.double().norm())


def measure(run: Callable[[], Tensor], shape: Shape, bandwidth: float) -> Numbers:
    """Two medians of the captured step, and the rate of the better one."""
    graph = capture(run)
    return rated([replay_ms(graph, repeats=40) for _ in range(2)], shape, bandwidth)


def rated(times: list[float], shape: Shape, bandwidth: float) -> Numbers:
    """The better of these times as a rate."""
    rate = shape.step_bytes(CONTEXT) / min(times) / 1e6
    return {"ms": min(times), "ms_again": max(times), "GB/s": rate, "share": rate / bandwidth}


def measure_rows(step: FusedStep, peer: PeerStep, bandwidth: float) -> dict[str, Numbers]:
    """The fused step in three ways and the plain one, and how far the first are from the last."""
    rows, shape = step.tokens, step.shape
    found: dict[str, Numbers] = {}
    for name, invariant in (("fused", False), ("fused, batch-invariant", True)):
        tiles = choose_tiles(shape, tokens=rows, invariant=invariant)
        found[name] = measure(lambda tiles=tiles: step.run(tiles), shape, bandwidth)
        found[name]["error"] = relative_error(step.logits, peer.plain())
    tiles = choose_tiles(shape, tokens=rows)
    found["fused, not overlapped"] = measure(
        lambda: step.run(tiles, chained=False), shape, bandwidth
    )
    found["plain torch"] = measure(peer.plain, shape, bandwidth)
    return found


def measure_compiled(peer: PeerStep, bandwidth: float) -> Numbers:
    """The best compiled step, what was tried, and the seconds that took."""
    wanted = peer.plain()
    begin = time.monotonic()
    best = peer.best_compiled()
    spent = time.monotonic() - begin
    numbers = rated([replay_ms(best.graph, repeats=40) for _ in range(2)], peer.shape, bandwidth)
    tried = {f"ms, {name}": ms for name, ms in best.tried.items()}
    return {**numbers, **tried, "compile_s": spent, "error": relative_error(best.logits, wanted)}


def show(shape: Shape, rows: int, name: str, numbers: Numbers) -> None:
    """Prints one line of the table."""
    print(
        f"{shape.name} {rows} rows  {name:24} {numbers['ms']:.3f} ms  {numbers['share']:.1%}",
        flush=True,
    )


def measure_shape(
    shape: Shape, weights: Weights, bandwidth: float, *, compile_peers: bool
) -> dict[str, object]:
    """Both widths of one shape: a decode step, and the verify of six rows."""
    limit = shape.step_bytes(CONTEXT) / bandwidth / 1e6
    steps: dict[str, dict[str, Numbers]] = {}
    for rows in (1, 6):
        step = FusedStep(shape, weights, tokens=rows, context=CONTEXT)
        peer = PeerStep.of(step)
        steps[str(rows)] = measure_rows(step, peer, bandwidth)
        if compile_peers:
            steps[str(rows)]["torch.compile"] = measure_compiled(peer, bandwidth)
        for name, numbers in steps[str(rows)].items():
            show(shape, rows, name, numbers)
    return {"shape": asdict(shape), "limit_ms": limit, "rows": steps}


def run(*, compile_peers: bool, command: str, write: Callable[[dict[str, object]], None]) -> None:
    """Hands over the report whenever a shape is complete."""
    bandwidth = measured_card(torch.device("cuda"), torch.bfloat16).bandwidth / 1e9
    print(f"read bandwidth {bandwidth:.0f} GB/s", flush=True)
    report: dict[str, object] = {
        "card": torch.cuda.get_device_name(),
        "versions": {
            "torch": torch.__version__,
            "triton": triton.__version__,
            "python": platform.python_version(),
        },
        "date": time.strftime("%Y-%m-%d"),
        "command": command,
        "context": CONTEXT,
        "weights": "random, bf16",
        "read_bandwidth_GB/s": bandwidth,
    }
    for shape in (LLAMA_8B, LLAMA_1B):
        weights = random_weights(shape)
        report[shape.name] = measure_shape(shape, weights, bandwidth, compile_peers=compile_peers)
        write(report)
        del weights


def main() -> None:
    """Measures, prints a table and writes JSON if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="where to write the report")
    parser.add_argument("--no-compile", action="store_true", help="leave the compiled peer out")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no CUDA device; run this on a machine that has one")
    torch.manual_seed(0)

    def write(report: dict[str, object]) -> None:
        if arguments.json:
            arguments.json.write_text(json.dumps(report, indent=2) + "\n")

    named = [] if arguments.json is None else ["--json", arguments.json.name]
    flags = ["--no-compile"] if arguments.no_compile else []
    run(
        compile_peers=not arguments.no_compile,
        command=" ".join(["python -m tests.bench.gpu_step", *named, *flags]),
        write=write,
    )


if __name__ == "__main__":
    main()
