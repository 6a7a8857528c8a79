"""The peers of transformers: the same model, and an assistant that is always right."""

from __future__ import annotations

import pytest
import torch

from engine.bench.sweep import Plan
from engine.config import EngineConfig
from engine.llm import LLM
from engine.models.base import StandaloneDraft
from engine.models.config import ModelConfig
from engine.models.pair import ModelPair
from engine.models.random_pair import random_pair
from engine.sampling import SamplingParams
from tests.bench import engine_peers
from tests.bench.transformers_peers import as_transformers, continue_alike, generate, speed

PROMPT = [5, 6, 7, 200, 41]


def shape(hidden: int) -> ModelConfig:
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    }
    raw = {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 300,
        "hidden_size": hidden,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "rope_scaling": scaling,
        "tie_word_embeddings": hidden == 32,
    }
    return ModelConfig.from_hf(raw, source=f"<{hidden}>")


@pytest.fixture
def config() -> EngineConfig:
    return EngineConfig.of(target="big", draft="small", algorithm="standalone", max_context=64)


@pytest.fixture
def pair(config: EngineConfig) -> ModelPair:
    return random_pair(shape(64), shape(32), config)


def test_the_same_model_over_the_same_memory(pair: ModelPair, config: EngineConfig) -> None:
    theirs = as_transformers(pair.target)
    weight = theirs.model.layers[1].mlp.up_proj.weight
    assert weight.untyped_storage().data_ptr() == (
        pair.target.layers[1].mlp.gate_up.weight_OI.untyped_storage().data_ptr()
    )
    params = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)
    found = LLM.of(config, pair).generate([PROMPT], params)[0]
    assert list(found.token_ids) == generate(theirs, PROMPT, tokens=12)


def test_an_assistant_that_is_always_right(pair: ModelPair) -> None:
    assert isinstance(pair.draft, StandaloneDraft)
    target, assistant = as_transformers(pair.target), as_transformers(pair.draft.model)
    kept = pair.target.layers[0].mlp.down.weight_OI.clone()
    after = continue_alike(target, assistant).tolist()
    out = generate(target, PROMPT, tokens=9)
    assert out == [after[token] for token in [PROMPT[-1], *out[:-1]]]
    found = speed(target, PROMPT, tokens=20, assistant=assistant, proposed=4)
    assert found.per_forward == pytest.approx(5, abs=0.01)
    assert found.tokens_per_second > 0
    assert torch.equal(pair.target.layers[0].mlp.down.weight_OI, kept), "the engine's are its own"


def test_the_whole_comparison_with_one_peer_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled step needs a device; everything else of the report is measured here."""
    monkeypatch.setattr(
        engine_peers, "compiled_speed", lambda pair, context: {"tokens_per_second": 2.0}
    )
    plan = Plan(
        target=shape(64),
        draft=shape(32),
        acceptance=0.8,
        context=6,
        iterations=2,
        requests=(1,),
        num_draft_tokens=(1, 3),
        settings={"device": "cpu", "dtype": "float32", "graphs": False},
    )
    found = engine_peers.run(plan, tokens=8, command="python")
    points = found["engine"]
    assert isinstance(points, list)
    assert [point["num_draft_tokens"] for point in points] == [1, 3]
    ratios = found["ratios"]
    assert isinstance(ratios, dict)
    assert ratios["compiled"] == points[1]["tokens_per_second_at_the_average"] / 2.0
    assert set(ratios) == {
        *("compiled", "transformers", "transformers assisted"),
        "both at full acceptance",
    }
    full = found["engine at full acceptance"]
    assert isinstance(full, list)
    assert [point["accept_length"] for point in full] == [5, 21], "all that was drafted"
