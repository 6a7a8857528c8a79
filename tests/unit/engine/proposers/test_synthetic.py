"""Synthetic acceptance: the coins' average, the contract of a path, and random pairs."""

from __future__ import annotations

import pytest
import torch

from engine.config import EngineConfig
from engine.errors import EngineError
from engine.llm import LLM
from engine.models.pair import ModelPair, tiny_pair
from engine.models.published import PUBLISHED, shape_named
from engine.models.random_pair import random_pair
from engine.models.seeded import tiny_config
from engine.proposers.synthetic import synthetic
from engine.sampling import SamplingParams

from ..conftest import SHAPES


def accepting(probability: float, *, graphs: bool = False, **settings: object) -> LLM:
    config = EngineConfig.of(target="tiny", algorithm="standalone", graphs=graphs, **settings)
    return LLM.of(config, tiny_pair(config), proposer=synthetic(probability))


def params(tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True)


@pytest.mark.parametrize(("probability", "wanted"), [(0.0, 1.0), (1.0, 5.0)])
def test_certain_coins(probability: float, wanted: float, full: None) -> None:
    """Also under `full`: what is kept is a path that the contracts accept."""
    output = accepting(probability, num_steps=4).generate("hello", params(21))[0]
    assert output.metrics.accept_length == wanted


def test_the_average_of_the_coins() -> None:
    llm = accepting(0.8, num_steps=4, graphs=True)
    llm.generate(["a", "hello", "what", "zzz"], params(400))
    wanted = sum(0.8**depth for depth in range(5))
    # 480 iterations of standard deviation 1.7: three of them are a quarter of a token.
    assert llm.metrics().accept_length == pytest.approx(wanted, abs=0.25)
    first = llm.metrics().acceptance_by_position[0]
    assert first == pytest.approx(0.8, abs=0.06)


def test_equal_seeds_give_equal_lengths() -> None:
    def lengths(batch: list[str]) -> list[float]:
        outputs = accepting(0.5, seed=7).generate(batch, params(40))
        return [output.metrics.accept_length for output in outputs]

    assert lengths(["hello"])[0] == lengths(["hello", "other"])[0]


def test_after_the_path_the_target_speaks() -> None:
    """With nothing kept the text is plain decoding's."""
    config = EngineConfig.of(target="tiny", algorithm="none")
    plain = LLM.of(config).generate("hello", params(20))[0]
    assert accepting(0.0).generate("hello", params(20))[0].token_ids == plain.token_ids


def test_trees_and_other_numbers_are_refused() -> None:
    with pytest.raises(EngineError, match="leave topk at 1"):
        accepting(0.8, **SHAPES["tree"])
    with pytest.raises(EngineError, match=r"choose one in \[0, 1\]"):
        accepting(1.5)


def random(target: int = 64, draft: int | None = 32) -> ModelPair:
    config = EngineConfig.of(target="random", draft="random", algorithm="standalone")
    small = None if draft is None else tiny_config(hidden=draft)
    return random_pair(tiny_config(hidden=target), small, config)


def test_random_pairs_are_seeded_and_finite() -> None:
    pair, again = random(), random()
    for mine, theirs in zip(pair.target.parameters(), again.target.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert mine.isfinite().all()
    assert pair.target.embedding.weight_VH.std() == pytest.approx(64**-0.5, rel=0.05)
    assert random(draft=None).draft is None


def test_random_pairs_take_ids_and_no_text() -> None:
    config = EngineConfig.of(target="random", draft="random", algorithm="standalone")
    llm = LLM.of(config, random())
    output = llm.generate([[1, 2, 3]], params(5))[0]
    assert len(output.token_ids) == 5
    assert output.text == ""
    with pytest.raises(EngineError, match="give the prompt as token ids"):
        llm.generate("hello", params(5))


def test_published_shapes() -> None:
    large, small = PUBLISHED["llama-8b"], PUBLISHED["llama-1b"]
    weights = large.layers * (large.hidden * 10240 + 3 * large.hidden * large.ffn)
    assert weights + 2 * large.vocab * large.hidden == pytest.approx(8.03e9, rel=1e-3)
    assert small.vocab == large.vocab
    assert small.tied
    assert shape_named("llama-8b") is large
    with pytest.raises(EngineError, match="neither one of llama-8b, llama-1b nor a"):
        shape_named("llama-9b")
