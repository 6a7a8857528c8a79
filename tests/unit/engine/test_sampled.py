"""Under a temperature: seeds decide, batches do not; drawn drafts leave the law as it is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from engine.llm import LLM
from engine.proposers.candidates import RootChildren
from engine.sampling import SamplingParams
from engine.sampling.batch import BatchSampling

from .conftest import SHAPES, drafted_by, every_proposer, tiny

PROMPTS = ["a", "hello world", "the quick brown fox"]


def warm(**changes: object) -> SamplingParams:
    values = {"max_tokens": 16, "temperature": 0.9, "seed": 11, "ignore_eos": True, **changes}
    return SamplingParams(**values)


FILTERS = {
    "plain": {},
    "top-k": {"top_k": 5},
    "top-p and min-p": {"top_p": 0.8, "min_p": 0.02},
    "penalties": {
        "repetition_penalty": 1.4,
        "presence_penalty": 0.3,
        "frequency_penalty": 0.2,
    },
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("algorithm", "shape"), every_proposer())
def test_chosen_candidates_leave_every_token_as_it_was(
    algorithm: str, shape: str, name: str
) -> None:
    """The coin of a token follows seed and position: speculation does not change one token."""
    params = warm(**FILTERS[name])
    wanted = [output.token_ids for output in tiny("none").generate(PROMPTS, params)]
    found = tiny(algorithm, **SHAPES[shape]).generate(PROMPTS, params)
    assert [output.token_ids for output in found] == wanted


@pytest.mark.parametrize("shape", ["chain of 4", "tree"])
def test_drawn_candidates_do_not_depend_on_the_batch(shape: str) -> None:
    llm = tiny("eagle3", drafting="drawn", **SHAPES[shape])
    together = [output.token_ids for output in llm.generate(PROMPTS, warm())]
    alone = [llm.generate(prompt, warm())[0].token_ids for prompt in reversed(PROMPTS)]
    assert together == alone[::-1]


def test_seeds_differ_and_unseeded_requests_differ() -> None:
    llm = tiny("none")
    outputs = [llm.generate("a", warm(seed=seed))[0].token_ids for seed in (1, 2)]
    assert outputs[0] != outputs[1]
    free = llm.generate(["a", "a"], warm(seed=None))
    assert free[0].token_ids != free[1].token_ids


SEEDS = 600


def pairs(llm: LLM, first_seed: int) -> Counter[tuple[int, ...]]:
    """The first two tokens under many seeds; the second is the first that a draft can touch."""
    params = [
        warm(max_tokens=2, temperature=0.7, top_k=3, seed=first_seed + number)
        for number in range(SEEDS)
    ]
    return Counter(output.token_ids for output in llm.generate(["a"] * SEEDS, params))


@cache
def wanted_pairs() -> Counter[tuple[int, ...]]:
    found = pairs(tiny("none", max_requests=64), 10_000)
    assert len(found) == 9
    return found


def is_the_same_law(drawn: Counter[tuple[int, ...]]) -> bool:
    """Chi-square of two samples of one size, 8 degrees of freedom, 1e-9 false alarms."""
    wanted = wanted_pairs()
    statistic = sum(
        (drawn[pair] - wanted[pair]) ** 2 / (drawn[pair] + wanted[pair]) for pair in wanted
    )
    # Wilson and Hilferty's bound at six standard deviations.
    return set(drawn) <= set(wanted) and statistic < 8 * (1 - 2 / 72 + 6 * math.sqrt(2 / 72)) ** 3


@pytest.mark.parametrize(
    ("draft", "shape"),
    [
        ("oracle", "chain of 1"),
        ("adversarial", "chain of 4"),
        ("adversarial", "tree"),
        ("sharp", "chain of 4"),
        ("sharp", "tree"),
    ],
)
def test_drawn_drafts_leave_the_law_as_it_is(draft: str, shape: str) -> None:
    llm = drafted_by(draft, drafting="drawn", max_requests=64, **SHAPES[shape])
    assert is_the_same_law(pairs(llm, 0))


def test_a_wrong_draft_law_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: tokens of a sharper law, said to be drawn evenly, bend what comes out."""
    llm = drafted_by("sharp", drafting="drawn", max_requests=64, num_steps=1)
    candidates = llm.engine.scheduler.step.proposer.candidates
    honest = candidates.root

    def lying(logits: Tensor, positions: Tensor, sampling: BatchSampling) -> RootChildren:
        found = honest(logits, positions, sampling)
        controls = replace(sampling.controls, truncates=False)
        even = honest(torch.zeros_like(logits), positions, replace(sampling, controls=controls))
        return replace(found, law=even.law)

    monkeypatch.setattr(candidates, "root", lying)
    assert not is_the_same_law(pairs(llm, 0))


def test_logprobs_follow_the_tokens() -> None:
    asked = SamplingParams(max_tokens=8, temperature=0.0, logprobs=2, ignore_eos=True)
    plain = tiny("none").generate("hello", asked)[0]
    tree = tiny("eagle3", **SHAPES["tree"]).generate(["zzz", "hello"], [warm(), asked])[1]
    assert plain.logprobs is not None
    assert tree.logprobs is not None
    assert [entry.token for entry in tree.logprobs] == list(tree.token_ids)
    for mine, theirs in zip(tree.logprobs, plain.logprobs, strict=True):
        assert mine.token == theirs.token == mine.top[0][0], "greedy takes the best"
        assert mine.logprob == pytest.approx(theirs.logprob, abs=1e-4)
        assert mine.logprob == mine.top[0][1] > mine.top[1][1]
    assert tiny("none").generate("hello", warm())[0].logprobs is None
