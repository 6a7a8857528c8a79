"""contract_share: what the engine's contracts cost of an iteration, at every level.

python -m tests.bench.contract_share --device cuda --json

One engine and one request; the levels take turns in rounds, so that a growing context and a warming
machine weigh on all alike. `whole` compares medians of whole iterations, and is only as fine as
their spread, which is given. `checks` times by themselves, on the host, the checks of one
iteration's hand-overs and copies into buffers; so are those of jaxtyping + beartype on the same
carriers timed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles

# Contracts are decorated on import: bare, so that every level can be put on.
os.environ["SHAPECHECK"] = "off"

import torch

from engine.bench.report import acceptance_label
from engine.bench.sweep import Plan, engine_at
from engine.llm import LLM
from engine.models.published import shape_named
from engine.observe.contracts import Crossing, check_seconds, recorded
from engine.sampling import SamplingParams
from shapecheck.config import Level
from shapecheck.runtime import buffers as copy_in
from tests.bench.jaxtyped_carriers import checks_of
from tests.bench.levels import at_level
from tests.bench.patches import Patches
from tests.bench.report import report, write

REPEATS = 50


def measure(plan: Plan, *, rounds: int, turns: int) -> dict[str, object]:
    """Milliseconds and shares of every level, and of jaxtyping + beartype."""
    pair = plan.pair()
    llm = engine_at(plan, pair, 1, plan.num_draft_tokens[0])
    room = (rounds + 1) * len(Level) * (turns + 2) * plan.num_draft_tokens[0]
    params = SamplingParams(max_tokens=room, temperature=0.0, ignore_eos=True)
    request = llm.engine.add(plan.prompts(1)[0], params)
    times: dict[Level, list[float]] = {level: [] for level in Level}
    checks: dict[Level, float] = {}
    crossings: list[Crossing] = []
    while not request.iterations:
        llm.engine.turn()
    for number in range(rounds):
        for level in _rotated(number):
            with at_level(level):
                llm.engine.turn()  # the first call of a level builds its plans
                times[level] += [_seconds(llm.engine.turn) for _ in range(turns)]
                if number == rounds - 1:
                    crossings = _crossings(llm)
                    found = check_seconds(crossings, repeats=REPEATS)
                    checks[level] = found + _copy_in_seconds(llm)
    assert request.finish is None, "the request ended while it was measured"
    llm.engine.abort(request)
    return _results(times, checks, _jaxtyping_seconds(crossings))


def _rotated(number: int) -> Sequence[Level]:
    """Another level comes first in every round."""
    levels = list(Level)
    first = number % len(levels)
    return levels[first:] + levels[:first]


def _crossings(llm: LLM) -> list[Crossing]:
    with recorded(llm.engine.scheduler.step) as crossings:
        llm.engine.turn()
    return crossings


def _copy_in_seconds(llm: LLM) -> float:
    """What judging the buffers of one iteration takes: it is no contract's, and off checks none."""
    right, pairs = copy_in.alike, []

    def kept(buffer: object, value: object) -> bool:
        pairs.append((buffer, value))
        return right(buffer, value)

    with Patches() as patches:
        patches.set(copy_in, "alike", kept)
        llm.engine.turn()
    return sum(
        min(_seconds(lambda pair=pair: right(*pair)) for _ in range(REPEATS)) for pair in pairs
    )


def _jaxtyping_seconds(crossings: list[Crossing]) -> float:
    return sum(min(_seconds(check) for _ in range(REPEATS)) for check in checks_of(crossings))


def _results(
    times: dict[Level, list[float]], checks: dict[Level, float], jaxtyping: float
) -> dict[str, object]:
    off = median(times[Level.OFF])
    rows: dict[str, object] = {}
    for level, each in times.items():
        low, _, high = quantiles(each, n=4)
        rows[str(level)] = {
            "iteration_ms": median(each) * 1e3,
            "quartiles_ms": [low * 1e3, high * 1e3],
            "whole_share": median(each) / off - 1,
            "checks_us": checks[level] * 1e6,
            "checks_share": checks[level] / off,
        }
    rows["jaxtyping + beartype"] = {
        "checks_us": jaxtyping * 1e6,
        "checks_share": jaxtyping / off,
    }
    return rows


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--random", default="llama-8b,llama-1b", help="TARGET,DRAFT")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--turns", type=int, default=10, help="timed in each round and level")
    parser.add_argument("--json", action="store_true", help="the whole report as JSON")
    options = parser.parse_args()
    target, draft = (shape_named(name) for name in options.random.split(","))
    cuda = options.device.startswith("cuda")
    plan = Plan(
        target=target,
        draft=draft,
        acceptance=0.8,
        context=options.context,
        iterations=(options.rounds + 1) * len(Level) * (options.turns + 2) // 2,
        requests=(1,),
        num_draft_tokens=(5,),
        settings={
            "device": options.device,
            "dtype": "bfloat16" if cuda else "float32",
            "graphs": True,
        },
    )
    results = measure(plan, rounds=options.rounds, turns=options.turns)
    if options.json:
        named = torch.cuda.get_device_name() if cuda else "cpu"
        results = {"device": named, "acceptance": acceptance_label(plan), "levels": results}
        command = f"python -m tests.bench.contract_share --device {options.device} --json"
        write(report("contract_share", results, command=command))
        return
    print(acceptance_label(plan))
    for level, row in results.items():
        print(f"{level:22} {row}")


if __name__ == "__main__":
    main()
