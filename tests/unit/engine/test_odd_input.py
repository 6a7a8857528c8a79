"""What callers should not give: refused in a sentence that says what to give instead."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine import LLM, CheckpointError, EngineError, SamplingParams
from engine.config import EngineConfig, as_path
from engine.models.base import StandaloneDraft
from engine.models.config import ModelConfig
from engine.models.load import build_model
from engine.models.pair import ModelPair, _build, tiny_pair
from engine.models.seeded import seed_weights, tiny_config

from .conftest import slots_add_up, tiny

PARAMS = SamplingParams(max_tokens=4, temperature=0.0, ignore_eos=True)


@pytest.fixture(scope="module")
def llm() -> LLM:
    return tiny("ngram")


@pytest.mark.parametrize(
    "prompts",
    [
        None,
        5,
        1.5,
        b"abc",
        [None],
        [1.0, 2],
        ["a", 5],
        [{1: 2}],
        [{1, 2}],
        pytest.param([iter([1, 2])], id="an iterator in a list"),
        [5, "a"],
        [b"ab"],
        torch.tensor([1, 2]),
    ],
    ids=lambda prompts: repr(prompts).partition(" at 0x")[0],
)
def test_prompts_of_no_kind(llm: LLM, prompts: object) -> None:
    with pytest.raises(EngineError, match="a prompt is a text or a list of token ids, not"):
        llm.generate(prompts, PARAMS)
    assert slots_add_up(llm)


def test_half_a_character(llm: LLM) -> None:
    with pytest.raises(EngineError, match=r"character 1 .* half a character .*errors='replace'"):
        llm.generate("a\ud800", PARAMS)


@pytest.mark.parametrize("prompt", [np.array([104, 105]), (104, 105), [np.int64(104), 105]])
def test_ids_of_every_kind(llm: LLM, prompt: object) -> None:
    assert llm.generate(prompt, PARAMS) == llm.generate("hi", PARAMS)


@pytest.mark.parametrize("params", [5, "x", [None], {"max_tokens": 4}], ids=repr)
def test_params_of_another_kind(llm: LLM, params: object) -> None:
    with pytest.raises(EngineError, match=r"params are SamplingParams, not .*; write"):
        llm.generate("a", params)
    with pytest.raises(EngineError, match=r"params are SamplingParams, not .*; write"):
        next(llm.stream("a", params))


@pytest.mark.parametrize("prompt", ["abc", b"abc", [1.5], ["a"]], ids=repr)
def test_an_engine_reads_ids_alone(llm: LLM, prompt: object) -> None:
    with pytest.raises(EngineError, match=r"reads token ids, not .*; encode the text"):
        llm.engine.add(prompt, PARAMS)
    with pytest.raises(EngineError, match=r"params are SamplingParams, not None; give"):
        llm.engine.add([1], None)
    assert not llm.engine.scheduler.unfinished


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_k", 2**70),
        ("top_p", 1e-300),
        ("repetition_penalty", 1e300),
        ("repetition_penalty", 1e-300),
        ("presence_penalty", -1e308),
        ("frequency_penalty", 1e308),
        ("max_tokens", 0),
        ("temperature", 10**400),
        ("presence_penalty", -(10**400)),
    ],
)
def test_values_beyond_the_tensors_they_go_to(name: str, value: object) -> None:
    with pytest.raises(EngineError, match=rf"SamplingParams\({name}=.* is out of range: "):
        SamplingParams(**{name: value})


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(max_tokens=4, temperature=1e300),
        SamplingParams(max_tokens=4, repetition_penalty=1e4, presence_penalty=-1e4),
        SamplingParams(max_tokens=4, top_p=1e-6, min_p=1.0, top_k=2**62),
        SamplingParams(max_tokens=2**80, stop=("x" * 10**6, *map(str, range(1000, 3000)))),
        SamplingParams(max_tokens=4, logprobs=10**30, stop_token_ids=(10**30,)),
    ],
)
def test_extremes_that_have_a_meaning(llm: LLM, params: SamplingParams) -> None:
    for output in llm.generate(["hello", "you"], params):
        assert all(0 <= token < 258 for token in output.token_ids)
    assert slots_add_up(llm)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"max_requests": 10**9}, "request table .* lower max_requests"),
        ({"num_slots": 10**13}, "keys of shape .* lower max_requests, max_context or num_slots"),
        ({"max_context": 10**9}, "max_context: .* less than or equal to 1048576"),
        ({"seed": 2**64}, "seed: .* less than or equal"),
        ({"num_steps": 10**6}, "num_steps: .* less than or equal to 1024"),
        ({"topk": 10**6}, "topk: .* less than or equal to 1024"),
        ({"num_draft_tokens": 10**9}, "num_draft_tokens: .* less than or equal to 65536"),
        ({"device": "meta"}, "device 'meta' is not known; use cpu or cuda"),
        ({"device": ""}, "device '' is not known; use cpu or cuda"),
    ],
)
def test_settings(settings: dict[str, object], wanted: str) -> None:
    with pytest.raises(EngineError, match=wanted):
        tiny("ngram", **settings)


def test_seeds_of_requests_wrap_around() -> None:
    config = EngineConfig.of(target="tiny", seed=2**63 - 1)
    assert len(LLM.of(config).generate(["a", "b"], SamplingParams(max_tokens=2))) == 2


@pytest.mark.parametrize("name", ["\0", "~nobody-has-this-name/x", "a" * 5000])
def test_paths_that_cannot_exist(name: str) -> None:
    with pytest.raises(EngineError, match="check the path"):
        as_path(name)


def test_a_draft_trained_for_fewer_positions_goes_as_far_as_its_target() -> None:
    config = EngineConfig.of(target="tiny", algorithm="standalone", num_steps=2)
    pair = tiny_pair(config)
    assert isinstance(pair.draft, StandaloneDraft)
    short = pair.draft.config.model_copy(update={"max_positions": 16})
    target = pair.target.config
    draft = _build(short, config, role="draft", reach=target)
    seed_weights(draft, 2)
    models = ModelPair(target=pair.target, draft=StandaloneDraft(draft), tokenizer=pair.tokenizer)
    params = SamplingParams(max_tokens=40, temperature=0.0, ignore_eos=True)
    wanted = tiny("none").generate("hello", params)[0].token_ids
    assert LLM.of(config, models).generate("hello", params)[0].token_ids == wanted


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ({"vocab_size": 10**13}, "no memory for a model of these sizes .* check the config"),
        ({"num_hidden_layers": 10**7}, "num_hidden_layers: .* less than or equal to 1024"),
    ],
)
def test_configs_beyond_any_memory(sizes: dict[str, int], wanted: str) -> None:
    raw = {**tiny_config(hidden=64).raw, **sizes}
    with pytest.raises(CheckpointError, match=wanted):
        build_model(ModelConfig.from_hf(raw, source="config.json"))
