"""lossless: greedy output with a draft and CUDA graphs against the same kernels without either.

python -m tests.bench.lossless --json lossless.json

A model of random weights drafts for itself, so that most drafts are accepted and every verify row
counts. In the batch-invariant mode tokens and log-probabilities have to be equal bit for bit. In
the default mode a row's sums depend on its batch: runs may part, but only at a tie, where the two
best tokens lie nearer than both together may move: a log-probability moves as far as the two runs
have differed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from engine.config import EngineConfig
from engine.llm import LLM
from engine.models.base import StandaloneDraft
from engine.models.config import ModelConfig
from engine.models.pair import ModelPair
from engine.models.published import shape_named
from engine.models.random_pair import NoTokenizer, random_pair
from engine.sampling import SamplingParams
from engine.scheduler.request import TokenLogprob
from tests.bench import report

DRAFTED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where two runs of a request part: nats between its two best tokens, and the runs' noise."""

    request: int
    position: int
    gap: float
    noise: float

    @property
    def is_tie(self) -> bool:
        """Whether noise alone may have turned the choice: either of the two may move by it."""
        return self.gap <= 2 * self.noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All requests of two runs; `noise` is the largest difference of equal tokens, in nats."""

    tokens: int
    partings: tuple[Parting, ...]
    noise: float

    @property
    def is_lossless(self) -> bool:
        """Whether every parting is a tie."""
        return all(parting.is_tie for parting in self.partings)

    def as_json(self) -> dict[str, object]:
        """The counts, and every parting."""
        return {
            "tokens": self.tokens,
            "partings": [
                {
                    "request": one.request,
                    "position": one.position,
                    "gap": one.gap,
                    "noise": one.noise,
                    "is_tie": one.is_tie,
                }
                for one in self.partings
            ],
            "noise": self.noise,
            "lossless": self.is_lossless,
        }


Chosen = Sequence[TokenLogprob]
"""The tokens of one request, each beside the two best of its position."""


def compare(plain: Sequence[Chosen], drafted: Sequence[Chosen]) -> Verdict:
    """The same requests of both runs."""
    noises, partings, tokens = [], [], 0
    for number, (one, other) in enumerate(zip(plain, drafted, strict=True)):
        for position, (left, right) in enumerate(zip(one, other, strict=True)):
            if left.token != right.token:
                gap = left.top[0][1] - left.top[1][1]
                partings.append((number, position, gap))
                break
            noises.append(abs(left.logprob - right.logprob))
            tokens += 1
    noise = max(noises, default=0.0)
    return Verdict(
        tokens=tokens,
        partings=tuple(
            Parting(request=number, position=position, gap=gap, noise=noise)
            for number, position, gap in partings
        ),
        noise=noise,
    )


def run(
    shape: ModelConfig,
    *,
    device: str,
    dtype: str,
    requests: int,
    context: int,
    tokens: int,
    invariant: bool,
) -> Verdict:
    """One mode: plain and eager against drafted and, on CUDA, in graphs."""
    plain = EngineConfig.of(
        target=shape.source,
        algorithm="none",
        device=device,
        dtype=dtype,
        graphs=False,
        batch_invariant=invariant,
        max_requests=requests,
        max_context=context + tokens + 1,
        num_slots=requests * (context + tokens + 2 * DRAFTED + 40),
        prefill_chunk=requests * context,
        prefix_cache=False,
    )
    drafted = plain.model_copy(
        update={
            "algorithm": "standalone",
            "draft": shape.source,
            "num_steps": DRAFTED,
            "graphs": True,
        }
    )
    target = random_pair(shape, None, drafted).target
    tokenizer = NoTokenizer(shape.vocab)
    pair = ModelPair(target=target, draft=StandaloneDraft(target), tokenizer=tokenizer)
    generator = torch.Generator().manual_seed(1)
    size = (requests, context)
    prompts = torch.randint(shape.vocab, size, generator=generator).tolist()
    params = SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True, logprobs=2)
    runs = [
        [output.logprobs or () for output in LLM.of(config, one).generate(prompts, params)]
        for config, one in ((plain, replace(pair, draft=None)), (drafted, pair))
    ]
    return compare(*runs)


def main() -> None:
    """Exits with 1 unless both modes hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="where to write the report")
    parser.add_argument("--shape", default="llama-1b", help="a published shape or a config.json")
    parser.add_argument("--requests", type=int, default=4)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=256)
    options = parser.parse_args()
    results: dict[str, object] = {"shape": options.shape, "device": torch.cuda.get_device_name()}
    verdicts = {}
    for name, invariant in (("batch-invariant", True), ("default", False)):
        verdicts[name] = run(
            shape_named(options.shape),
            device="cuda",
            dtype="bfloat16",
            requests=options.requests,
            context=options.context,
            tokens=options.tokens,
            invariant=invariant,
        )
        results[name] = verdicts[name].as_json()
    exact = not verdicts["batch-invariant"].partings and verdicts["batch-invariant"].noise == 0.0
    results["bit_for_bit"] = exact
    command = shlex.join(["python", "-m", "tests.bench.lossless", *sys.argv[1:]])
    document = report.report("lossless", results, command=command)
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))
    raise SystemExit(0 if exact and verdicts["default"].is_lossless else 1)


if __name__ == "__main__":
    main()
