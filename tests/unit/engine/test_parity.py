"""Greedy output is the target's own, whatever proposes, token for token."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.llm import LLM
from engine.models.pair import load_pair
from engine.sampling import SamplingParams

from .conftest import (
    SHAPES,
    as_transformers,
    drafted_by,
    every_proposer,
    generate,
    slots_add_up,
    tiny,
)

COUNT = 24
GREEDY = SamplingParams(max_tokens=COUNT, temperature=0.0, ignore_eos=True)
PROMPTS = ["a", "hello world", "the quick brown fox jumps over the lazy dog", "zzzzzzzzzzzz"]


@cache
def reference() -> list[list[int]]:
    """What transformers gives for the prompts."""
    llm = tiny("none")
    theirs = as_transformers(llm.engine.pair.target)
    return [generate(theirs, llm.tokenizer.encode(prompt), COUNT) for prompt in PROMPTS]


def outputs(llm: LLM) -> list[list[int]]:
    found = [list(output.token_ids) for output in llm.generate(PROMPTS, GREEDY)]
    assert slots_add_up(llm)
    return found


def test_plain_decoding_is_transformers_generate() -> None:
    assert outputs(tiny("none")) == reference()


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "replayed"])
@pytest.mark.parametrize(("algorithm", "shape"), every_proposer())
def test_every_proposer(algorithm: str, shape: str, graphs: bool) -> None:
    assert outputs(tiny(algorithm, graphs=graphs, **SHAPES[shape])) == reference()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("algorithm", ["standalone", "eagle3"])
def test_drawn_candidates(algorithm: str, shape: str) -> None:
    assert outputs(tiny(algorithm, drafting="drawn", **SHAPES[shape])) == reference()


@pytest.mark.parametrize("drafting", ["best", "drawn"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("draft", ["oracle", "adversarial"])
def test_drafts_of_every_quality(draft: str, shape: str, drafting: str) -> None:
    assert outputs(drafted_by(draft, drafting=drafting, **SHAPES[shape])) == reference()


@pytest.mark.parametrize("algorithm", ["none", "ngram", "standalone", "eagle3"])
@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_chunked_prefill(algorithm: str, chunk: int) -> None:
    assert outputs(tiny(algorithm, prefill_chunk=chunk)) == reference()


@pytest.mark.parametrize("algorithm", ["none", "standalone", "eagle", "eagle3"])
def test_a_cached_prefix_changes_nothing(algorithm: str) -> None:
    """The second round finds the first one's prompts and outputs; a third forks in the middle."""
    llm = tiny(algorithm, prefix_block=4)
    assert outputs(llm) == reference()
    assert llm.engine.memory.cached
    computed = llm.metrics().prompt_tokens
    assert outputs(llm) == reference()
    assert llm.metrics().prompt_tokens - computed < computed
    forked = [PROMPTS[2][:20] + " sat", PROMPTS[2] + " and"]
    fresh = tiny(algorithm, prefix_cache=False)
    assert [o.token_ids for o in llm.generate(forked, GREEDY)] == [
        o.token_ids for o in fresh.generate(forked, GREEDY)
    ]


@pytest.mark.parametrize("algorithm", ["ngram", "standalone", "eagle3"])
def test_preemption_changes_nothing(algorithm: str) -> None:
    """A pool that holds little more than one request: the others give way and come back."""
    llm = tiny(algorithm, num_slots=110, prefix_block=4)
    assert outputs(llm) == reference()
    assert llm.metrics().preemptions > 0


_QUESTIONS = [
    "The capital of France is",
    "Water boils at",
    "def fibonacci(n):",
    "Once upon a time, there was a",
    "The three primary colours are",
    "In 1969, the first man on the",
    "Dear Sir or Madam,",
    "1, 2, 3, 4, 5,",
    "The opposite of hot is",
    "SELECT name FROM",
    "A triangle has three",
    "To be, or not to be,",
    "My favourite food is",
    "The sun rises in the",
    "import numpy as",
    "Roses are red, violets are",
    "The largest planet in our solar system is",
    "Hello, my name is",
    "The quick brown fox",
    "E = m c",
]


@pytest.mark.network
def test_smollm2_greedy_is_transformers_generate(smollm2: Path) -> None:
    """20 prompts, fp32, n-gram drafting, all in one engine: the tokens transformers gives."""
    config = EngineConfig.of(target=str(smollm2), algorithm="ngram", max_context=256)
    pair = load_pair(config)
    llm = LLM.of(config, pair)
    count = 12
    params = SamplingParams(max_tokens=count, temperature=0.0, ignore_eos=True)
    found = llm.generate(_QUESTIONS, params)
    theirs = as_transformers(pair.target)
    for prompt, output in zip(_QUESTIONS, found, strict=True):
        wanted = generate(theirs, llm.tokenizer.encode(prompt), count)
        assert list(output.token_ids) == wanted, prompt
    assert found[0].text.startswith(" Paris")
