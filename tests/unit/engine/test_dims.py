"""Dims come from both configs and are held against what was loaded."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.config import EngineConfig
from engine.dims import Memory, build_dims, check_layers, check_weights
from engine.errors import EngineError, WidthError
from engine.models.eagle import Eagle1, Eagle3
from engine.models.llama import CausalLM
from engine.models.load import build_model
from engine.models.seeded import tiny_config, tiny_eagle_config
from shapecheck import Dims
from shapecheck.errors import ShapecheckError, ShapeContractError

MEMORY = Memory(req_rows=5, max_context=77, num_slots=200)


def settings(algorithm: str, **changes: object) -> EngineConfig:
    draft = None if algorithm in ("none", "ngram") else "somewhere"
    return EngineConfig.of(algorithm=algorithm, draft=draft, **changes)


@pytest.fixture
def target() -> CausalLM:
    model = build_model(tiny_config(hidden=64, layers=6))
    assert isinstance(model, CausalLM)
    return model


def test_standalone(target: CausalLM) -> None:
    draft = build_model(tiny_config(hidden=32), role="draft")
    assert isinstance(draft, CausalLM)
    dims = build_dims(settings("standalone", num_steps=3), target.config, draft.config, MEMORY)
    assert (dims["target_hidden"], dims["draft_hidden"]) == (64, 32)
    assert (dims["num_steps"], dims["num_draft_tokens"], dims["accept_width"]) == (3, 4, 4)
    assert dims.get("extend_hidden") is None
    assert dims.get("recurrent_hidden") is None
    assert (dims["req_rows"], dims["max_context"], dims["num_slots"]) == (5, 77, 200)
    check_layers(dims, target)
    check_weights(dims, target.weights())
    check_weights(dims, draft.weights())


@pytest.mark.parametrize("version", ["eagle", "eagle3"])
def test_eagle(target: CausalLM, version: str) -> None:
    config = tiny_eagle_config(target.config, version=version)
    head = (Eagle3 if version == "eagle3" else Eagle1)(config, target, length=64)
    tree = settings(version, topk=3, num_steps=3, num_draft_tokens=8, dtype="bfloat16")
    dims = build_dims(tree, target.config, config, MEMORY)
    assert dims["extend_hidden"] == (192 if version == "eagle3" else 64)
    assert dims["recurrent_hidden"] == (32 if version == "eagle3" else 64)
    assert dims["draft_vocab"] == (129 if version == "eagle3" else 258)
    assert (dims.target_dtype, dims.draft_dtype) == ("bfloat16", "bfloat16")
    check_weights(dims, head.weights())


def test_plain_decoding_and_ngram(target: CausalLM) -> None:
    plain = build_dims(settings("none"), target.config, None, MEMORY)
    assert (plain["num_draft_tokens"], plain["accept_width"], plain["num_steps"]) == (1, 1, 0)
    ngram = build_dims(settings("ngram", num_steps=5), target.config, None, MEMORY)
    assert (ngram["num_draft_tokens"], ngram["accept_width"]) == (6, 6)
    assert ngram.get("draft_hidden") is None


def refusal(dims: Dims, model: CausalLM | Eagle3) -> str:
    with pytest.raises(ShapeContractError) as caught:
        check_weights(dims, model.weights())
    return str(caught.value)


def test_weights_that_are_not_the_configs(target: CausalLM) -> None:
    config = tiny_eagle_config(target.config, version="eagle3")
    dims = build_dims(settings("eagle3"), target.config, config, MEMORY)
    head = Eagle3(config, target, length=64)
    head.d2t = torch.zeros(128, dtype=torch.int64)
    assert "SHP201 check_shape, d2t" in (text := refusal(dims, head))
    assert "dim 0: draft_vocab is 129" in text
    head = Eagle3(config, target, length=64)
    head.fc.weight_OI = nn.Parameter(torch.zeros(32, 64), requires_grad=False)
    assert "dim 1: num_aux*target_hidden is 192" in refusal(dims, head)
    head = Eagle3(config, target, length=64)
    head.head.weight_VH = nn.Parameter(torch.zeros(258, 32), requires_grad=False)
    assert "258 is target_vocab" in refusal(dims, head)
    other = build_model(tiny_config(hidden=32))
    assert isinstance(other, CausalLM)
    assert "dim 1: target_hidden is 64" in refusal(dims, other)
    with pytest.raises(WidthError, match="was loaded with 5 layers, and target_layers is 6"):
        check_layers(dims, build_model(tiny_config(hidden=64, layers=5)))


def test_a_weight_without_its_axes_is_named_with_the_dimension(target: CausalLM) -> None:
    config = tiny_eagle_config(target.config, version="eagle3")
    dims = build_dims(settings("eagle3"), target.config, config, MEMORY)
    head = Eagle3(config, target, length=64)
    check_weights(dims, head.weights())
    check_weights(dims, target.weights())
    head.fc.weight_OI = nn.Parameter(torch.zeros(32), requires_grad=False)
    with pytest.raises(ShapeContractError, match=r"SHP201 check_shape, fc\.weight") as caught:
        check_weights(dims, head.weights())
    assert "num_aux*target_hidden" in str(caught.value)


def test_widths_that_contradict_are_findings_of_a_contract(target: CausalLM) -> None:
    draft = tiny_config(hidden=32).model_copy(update={"vocab": 260})
    with pytest.raises(WidthError) as caught:
        build_dims(settings("standalone"), target.config, draft, MEMORY)
    assert isinstance(caught.value, ShapeContractError)
    assert caught.value.diagnostic.code == "SHP201"
    assert str(caught.value).endswith("choose a draft with as many ids")


def test_padded_tables_are_refused(target: CausalLM) -> None:
    draft = tiny_config(hidden=32).model_copy(update={"vocab": 260})
    with pytest.raises(EngineError, match=r"draft_vocab is 260 .* target_vocab is 258"):
        build_dims(settings("standalone"), target.config, draft, MEMORY)


def test_pair_with_different_tokenizers(target: CausalLM) -> None:
    draft = tiny_config(hidden=32).model_copy(update={"vocab": 5000})
    with pytest.raises(ShapecheckError, match="5000"):
        build_dims(settings("standalone"), target.config, draft, MEMORY)
