"""CUDA gives the CPU's tokens, for every proposer; `-m gpu` runs it where there is a device."""

from __future__ import annotations

import pytest

from engine.sampling import SamplingParams

from .conftest import SHAPES, every_proposer, slots_add_up, tiny

PROMPTS = ["a", "hello world", "the quick brown fox jumps over the lazy dog"]
PARAMS = {
    "greedy": SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True),
    "warm": SamplingParams(max_tokens=24, temperature=0.9, top_p=0.9, seed=3, ignore_eos=True),
}

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "replayed"])
@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize(("algorithm", "shape"), every_proposer())
def test_every_proposer(algorithm: str, shape: str, name: str, graphs: bool) -> None:
    """fp32 on both sides: far apart logits choose the same tokens."""
    wanted = tiny("none").generate(PROMPTS, PARAMS[name])
    llm = tiny(algorithm, device="cuda", graphs=graphs, prefill_chunk=16, **SHAPES[shape])
    found = llm.generate(PROMPTS, PARAMS[name])
    assert [output.token_ids for output in found] == [output.token_ids for output in wanted]
    assert slots_add_up(llm)


@pytest.mark.parametrize("drafting", ["best", "drawn"])
@pytest.mark.parametrize("algorithm", ["none", "standalone", "eagle3"])
def test_bfloat16_runs(algorithm: str, drafting: str) -> None:
    llm = tiny(algorithm, device="cuda", dtype="bfloat16", drafting=drafting)
    outputs = llm.generate(PROMPTS, PARAMS["warm"])
    assert [len(output.token_ids) for output in outputs] == [24, 24, 24]
    assert slots_add_up(llm)
