"""Compare: an algorithm and plain decoding of one target, on one prompt and in one process."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bench.measure import Measured, measure
from engine.config import EngineConfig
from engine.llm import LLM
from engine.observe.metrics import Snapshot
from engine.observe.spans import Spans
from engine.sampling import SamplingParams

# Text that repeats itself, as edits and extractions do: what prompt lookup is for.
_FUNCTIONS = (
    "def area(width, height):\n    return width * height\n\n"
    "def volume(width, height, depth):\n    return width * height * depth\n\n"
)
BENCH_PROMPT = 2 * _FUNCTIONS + "def area("


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the two: its tokens, its counts, and its steady state if that was asked for."""

    token_ids: list[tuple[int, ...]]
    snapshot: Snapshot
    contract_seconds: float
    steady: Measured | None


def compare(
    settings: dict[str, object],
    *,
    prompt: str,
    max_tokens: int,
    requests: int,
    iterations: int,
    spans: Spans | None = None,
) -> dict[str, Compared]:
    """Plain decoding under "none", the algorithm under its name; `spans` are the latter's.

    Steady states are measured over `iterations` turns, not at all for 0.
    """
    config = EngineConfig.of(**settings)
    plain = {**settings, "algorithm": "none", "draft": None, "topk": 1, "num_draft_tokens": None}
    return {
        name: _run(
            LLM.of(chosen),
            prompt=prompt,
            max_tokens=max_tokens,
            requests=requests,
            iterations=iterations,
            spans=spans if chosen is config else None,
        )
        for name, chosen in (("none", EngineConfig.of(**plain)), (config.algorithm, config))
    }


def _run(
    llm: LLM, *, prompt: str, max_tokens: int, requests: int, iterations: int, spans: Spans | None
) -> Compared:
    params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
    llm.generate(prompt, SamplingParams(max_tokens=2, temperature=0.0))
    llm.reset_metrics()
    found = llm.generate([prompt] * requests, params)
    snapshot = llm.metrics()
    steady = None
    if iterations:
        ids = llm.tokenizer.encode(prompt)
        steady = measure(llm, [ids] * requests, iterations=iterations, spans=spans)
    return Compared(
        token_ids=[output.token_ids for output in found],
        snapshot=snapshot,
        contract_seconds=llm.contract_seconds(prompt),
        steady=steady,
    )
