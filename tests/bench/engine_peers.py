"""engine_peers: a whole speculative iteration against its peers, in one process and on one GPU.

python -m tests.bench.engine_peers --json engine_peers.json

All share the random weights of an 8B and a 1B shape and a prompt of 1024 tokens. The engine drafts
4 tokens an iteration, kept with probability 0.8 (SYNTHETIC); for the last peer also 4 and 20, all
of them kept. Its peers: one decode step compiled
by torch, replayed as a CUDA graph that feeds itself, without speculation; transformers' `generate`;
and the same assisted by the 1B at 100 % acceptance, its best case, where the weights are bent so
that both models follow every token with the same one. transformers is bound by its host.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

from engine.bench.card import Card, measured_card
from engine.bench.report import acceptance_label, header, line, point_report
from engine.bench.sweep import Plan, Point, sweep
from engine.models.base import StandaloneDraft
from engine.models.pair import ModelPair
from engine.models.published import shape_named
from tests.bench.peer_steps import PeerStep
from tests.bench.shapes import shape_of, weights_of
from tests.bench.transformers_peers import Speed, as_transformers, continue_alike, speed

WIDTHS = (1, 5)
# As many drafted tokens as the assisted peer's, for its own case: every one of them is accepted.
PROPOSED = (4, 20)


@torch.inference_mode()
def compiled_speed(pair: ModelPair, context: int, replays: int = 60) -> dict[str, object]:
    """The compiled recipe without speculation: a token a replay, always at the first context."""
    begin = time.monotonic()
    shape, weights = shape_of(pair.target, "target"), weights_of(pair.target)
    best = PeerStep.drawn(shape, weights, tokens=1, context=context).best_compiled(feed_back=True)
    spent = time.monotonic() - begin
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(replays):
        best.graph.replay()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / replays
    return {
        "tokens_per_second": 1 / seconds,
        "step_ms": seconds * 1e3,
        "recipe": best.recipe,
        "tried_ms": best.tried,
        "compile_s": spent,
    }


def transformers_speeds(pair: ModelPair, prompt: list[int], tokens: int) -> dict[str, Speed]:
    """Plain on the very weights; then assisted, on weights bent for full acceptance."""
    assert isinstance(pair.draft, StandaloneDraft), "the pair has a whole model as draft"
    target = as_transformers(pair.target)
    found = {"transformers": speed(target, prompt, tokens=tokens)}
    assistant = as_transformers(pair.draft.model)
    continue_alike(target, assistant)
    for proposed in PROPOSED:
        found[f"transformers assisted, {proposed} proposed"] = speed(
            target, prompt, tokens=tokens, assistant=assistant, proposed=proposed
        )
    return found


def ratios(
    engine: float, full: float, compiled: float, others: dict[str, Speed]
) -> dict[str, float]:
    """Engine over peer; of the assisted runs, and of the engine's at `full` acceptance, the fastest
    counts.
    """
    assisted = [each.tokens_per_second for name, each in others.items() if "assisted" in name]
    return {
        "compiled": engine / compiled,
        "transformers": engine / others["transformers"].tokens_per_second,
        "transformers assisted": engine / max(assisted),
        "both at full acceptance": full / max(assisted),
    }


def run(plan: Plan, *, tokens: int, command: str) -> dict[str, object]:
    """The whole comparison."""
    config = plan.config(1, 1)
    card = measured_card(torch.device(config.device), config.torch_dtype)
    print(f"{card.name}: reads {card.bandwidth / 1e9:.0f} GB/s, {card.rate / 1e12:.0f} TFLOP/s")
    accepted = replace(
        plan, acceptance=1.0, iterations=10, num_draft_tokens=tuple(1 + each for each in PROPOSED)
    )
    longest = max(
        (plan, accepted), key=lambda one: one.config(1, max(one.num_draft_tokens)).max_context
    )
    pair = longest.pair()
    points: list[Point] = []
    full: list[Point] = []
    print(acceptance_label(plan), flush=True)
    for point in sweep(plan, pair):
        points.append(point)
        print(line(point, card), flush=True)
    print(acceptance_label(accepted), flush=True)
    for point in sweep(accepted, pair, profile=False):
        full.append(point)
        print(line(point, card), flush=True)
    compiled = compiled_speed(pair, plan.context)
    print(f"compiled: {compiled}", flush=True)
    others = transformers_speeds(pair, plan.prompts(1)[0], tokens)
    print(f"transformers: {others}", flush=True)
    return _report(plan, card, points, full, compiled, others, command)


def _report(
    plan: Plan,
    card: Card,
    points: list[Point],
    full: list[Point],
    compiled: dict[str, object],
    others: dict[str, Speed],
    command: str,
) -> dict[str, object]:
    engine = points[-1].tokens_per_second
    compiled_tokens = compiled["tokens_per_second"]
    assert isinstance(compiled_tokens, float)
    return {
        "benchmark": "engine_peers",
        "acceptance": acceptance_label(plan),
        **header(card, command=command),
        "prompt_tokens": plan.context,
        "engine": [point_report(point, card) for point in points],
        "engine at full acceptance": [point_report(point, card) for point in full],
        "compiled": compiled,
        "transformers": {
            name: {"tokens_per_second": each.tokens_per_second, "per_forward": each.per_forward}
            for name, each in others.items()
        },
        "ratios": ratios(
            engine, max(point.tokens_per_second for point in full), compiled_tokens, others
        ),
    }


def main() -> None:
    """Measures, prints as it goes, and writes JSON if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="where to write the report")
    parser.add_argument("--tokens", type=int, default=40, help="of each run of transformers")
    parser.add_argument("--iterations", type=int, default=40)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no CUDA device; run this on a machine that has one")
    plan = Plan(
        target=shape_named("llama-8b"),
        draft=shape_named("llama-1b"),
        acceptance=0.8,
        context=1024,
        iterations=options.iterations,
        requests=(1,),
        num_draft_tokens=WIDTHS,
        settings={"device": "cuda", "dtype": "bfloat16", "graphs": True},
    )
    named = [] if options.json is None else ["--json", options.json.name]
    command = " ".join(["python -m tests.bench.engine_peers", *named])
    found = run(plan, tokens=options.tokens, command=command)
    print(json.dumps(found["ratios"], indent=2))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
