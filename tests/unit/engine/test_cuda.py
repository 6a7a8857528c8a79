"""CUDA gives the CPU's tokens, for every proposer; `-m gpu` runs it where there is a device."""

from __future__ import annotations

from dataclasses import replace

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


@pytest.mark.parametrize(
    ("algorithm", "dtype"), [("eagle3", "float32"), ("standalone", "bfloat16")]
)
@pytest.mark.parametrize("shape", ["chain of 4", "tree"])
def test_a_captured_drawn_loop_draws_what_the_eager_one_draws(
    shape: str, algorithm: str, dtype: str
) -> None:
    """Greedy, warm and truncating requests side by side, then each kind alone."""
    mixed = [PARAMS["greedy"], replace(PARAMS["warm"], top_p=1.0), PARAMS["warm"]]
    outputs = []
    for graphs in (False, True):
        llm = tiny(
            algorithm, device="cuda", dtype=dtype, drafting="drawn", graphs=graphs,
            batch_invariant=dtype == "bfloat16", **SHAPES[shape],
        )  # fmt: skip
        together = llm.generate(PROMPTS, mixed)
        alone = [llm.generate("zzz", params)[0] for params in mixed]
        outputs.append([output.token_ids for output in (*together, *alone)])
        assert slots_add_up(llm)
    assert outputs[0] == outputs[1]
