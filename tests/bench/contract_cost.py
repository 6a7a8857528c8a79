"""What a contract costs per call: `python -m tests.bench.contract_cost [--json]`.

Three hand-overs, each written bare, with hand-written asserts, with this project at level strict,
and with jaxtyping + beartype. All run interleaved in one process; the figure is the least thread
CPU time per call over many blocks. The ratios compare the checking: the bare call is subtracted
from both sides, which is stricter than comparing whole calls; those are reported as well.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.bench.report import report, write
from tests.bench.scenarios import CONTENDERS, scenarios

# Most that checking may cost against asserts, least that it saves against jaxtyping + beartype.
LIMITS = {"a": (1.5, 20.0), "b": (1.2, 30.0), "c": (1.2, 30.0)}
Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """One scenario against its limits, with the bare call subtracted and without."""

    to_asserts: float
    below_jaxtyping: float
    to_asserts_whole: float
    below_jaxtyping_whole: float

    def reached(self, limits: tuple[float, float]) -> bool:
        """Whether the checking is as cheap as promised."""
        return self.to_asserts <= limits[0] and self.below_jaxtyping >= limits[1]


def measure(calls: Mapping[str, Call], *, blocks: int, number: int) -> dict[str, float]:
    """Seconds of thread CPU time per call, least over blocks, the contenders taking turns."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        for _ in range(100):
            call()
    gc.disable()
    try:
        for _ in range(blocks):
            for name, call in calls.items():
                # The costly contender gets fewer calls: its block takes as long as the others'.
                count = max(number // 25, 10) if name == "jaxtyping" else number
                best[name] = min(best[name], _block(call, count))
    finally:
        gc.enable()
    return best


def _block(call: Call, count: int) -> float:
    turns = range(count)
    start = time.thread_time_ns()
    for _ in turns:
        call()
    return (time.thread_time_ns() - start) / count / 1e9


def ratios(seconds: Mapping[str, float]) -> Ratios:
    """How the checking compares."""
    bare = seconds["bare"]
    ours, asserts, jaxtyping = (
        seconds[name] - bare for name in ("shapecheck", "asserts", "jaxtyping")
    )
    return Ratios(
        to_asserts=ours / asserts,
        below_jaxtyping=jaxtyping / ours,
        to_asserts_whole=seconds["shapecheck"] / seconds["asserts"],
        below_jaxtyping_whole=seconds["jaxtyping"] / seconds["shapecheck"],
    )


def main() -> int:
    """Measure, print, and return 0 when every limit is reached, else 1."""
    parser = argparse.ArgumentParser(description="what a contract costs per call")
    parser.add_argument("--json", action="store_true", help="the whole report as JSON")
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--number", type=int, default=2000, help="calls per block")
    options = parser.parse_args()
    results: dict[str, object] = {}
    failed = False
    for key, scenario in scenarios().items():
        seconds = measure(scenario.calls, blocks=options.blocks, number=options.number)
        found = ratios(seconds)
        reached = found.reached(LIMITS[key])
        failed |= not reached
        results[key] = {
            "what": scenario.what,
            "nanoseconds": {name: round(seconds[name] * 1e9, 1) for name in CONTENDERS},
            "checking_to_asserts": round(found.to_asserts, 3),
            "checking_below_jaxtyping": round(found.below_jaxtyping, 1),
            "whole_call_to_asserts": round(found.to_asserts_whole, 3),
            "whole_call_below_jaxtyping": round(found.below_jaxtyping_whole, 1),
            "limits": {"to_asserts": LIMITS[key][0], "below_jaxtyping": LIMITS[key][1]},
            "reached": reached,
        }
        if not options.json:
            _show(key, scenario.what, seconds, found, reached)
    if options.json:
        command = "python -m tests.bench.contract_cost --json"
        write(report("contract_cost", results, command=command))
    return int(failed)


def _show(key: str, what: str, seconds: Mapping[str, float], found: Ratios, reached: bool) -> None:
    print(f"({key}) {what}")
    print("    " + "  ".join(f"{name} {seconds[name] * 1e9:.0f} ns" for name in CONTENDERS))
    most, least = LIMITS[key]
    print(
        f"    checking: {found.to_asserts:.2f}x asserts (at most {most}), "
        f"{found.below_jaxtyping:.0f}x below jaxtyping + beartype (at least {least:.0f}): "
        + ("reached" if reached else "NOT reached")
    )
    print(
        f"    whole call: {found.to_asserts_whole:.2f}x asserts, "
        f"{found.below_jaxtyping_whole:.0f}x below jaxtyping + beartype"
    )


if __name__ == "__main__":
    raise SystemExit(main())
