"""Logits agree with transformers, fp32, 1e-4 relative, for every family and rope scaling."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

from engine.models.load import load_model

from .conftest import logits_in_chunks, reference, save


@torch.inference_mode()
def theirs(model: transformers.PreTrainedModel, ids: Tensor) -> Tensor:
    return model(ids[None]).logits[0]


def assert_agrees(ours: Tensor, wanted: Tensor) -> None:
    difference = (ours - wanted).abs().max() / wanted.abs().max()
    assert wanted.abs().max() > 0.5, "logits near zero would agree by accident"
    assert difference < 1e-4, f"relative difference {difference:.2e}"


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_families(family: str, tied: bool, ids: Tensor, tmp_path: Path) -> None:
    model = reference(family, tie_word_embeddings=tied)
    ours = load_model(save(model, tmp_path))
    assert_agrees(logits_in_chunks(ours, ids, (24,)), theirs(model, ids))
    assert_agrees(logits_in_chunks(ours, ids, (5, 1, 11, 7)), theirs(model, ids))


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("llama", {"num_key_value_heads": 6}),
        ("llama", {"num_key_value_heads": 1}),
        ("qwen3", {"attention_bias": True}),
        ("qwen3", {"head_dim": 32}),
    ],
    ids=str,
)
def test_switches(family: str, changes: dict[str, object], ids: Tensor, tmp_path: Path) -> None:
    model = reference(family, **changes)
    ours = load_model(save(model, tmp_path))
    assert_agrees(logits_in_chunks(ours, ids, (24,)), theirs(model, ids))


ROPES: dict[str, dict[str, object]] = {
    "linear": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 500.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
        "rope_theta": 500.0,
    },
    "yarn": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "rope_theta": 500.0,
        "beta_fast": 4.0,
    },
    "yarn, mscale": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "rope_theta": 500.0,
        "beta_fast": 4.0,
        "mscale": 0.7,
        "mscale_all_dim": 1.2,
        "truncate": False,
    },
    "yarn, attention factor": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "rope_theta": 500.0,
        "attention_factor": 0.8,
    },
}


@pytest.mark.parametrize("name", ROPES)
def test_rope_scalings(name: str, ids: Tensor, tmp_path: Path) -> None:
    model = reference("llama", rope_parameters=ROPES[name], head_dim=16)
    ours = load_model(save(model, tmp_path))
    assert_agrees(logits_in_chunks(ours, ids, (24,)), theirs(model, ids))
    assert_agrees(logits_in_chunks(ours, ids, (9, 15)), theirs(model, ids))


def test_rope_scaling_of_older_configs(ids: Tensor, tmp_path: Path) -> None:
    """`rope_theta` and `rope_scaling` at the top level mean what `rope_parameters` means."""
    import json

    model = reference("llama", rope_parameters=ROPES["llama3"])
    save(model, tmp_path)
    file = tmp_path / "config.json"
    raw = json.loads(file.read_text())
    scaling = raw.pop("rope_parameters")
    raw["rope_theta"] = scaling.pop("rope_theta")
    raw["rope_scaling"] = scaling
    file.write_text(json.dumps(raw))
    assert_agrees(logits_in_chunks(load_model(tmp_path), ids, (24,)), theirs(model, ids))


@torch.inference_mode()
def test_dynamic_rope_beyond_its_context(ids: Tensor, tmp_path: Path) -> None:
    """Past the context each position has the angle that decoding token by token gives it."""
    model = reference("llama", rope_parameters=ROPES["dynamic"], max_position_embeddings=8)
    ours = load_model(save(model, tmp_path), length=24)
    cache = transformers.DynamicCache(config=model.config)
    wanted = [model(ids[None, :8], past_key_values=cache).logits[0]]
    for position in range(8, 24):
        step = model(ids[None, position : position + 1], past_key_values=cache)
        wanted.append(step.logits[0])
    assert_agrees(logits_in_chunks(ours, ids, (24,)), torch.cat(wanted))
    assert_agrees(logits_in_chunks(ours, ids, (8, 3, 13)), torch.cat(wanted))


def test_sharded_checkpoint_is_the_same_model(ids: Tensor, tmp_path: Path) -> None:
    model = reference("qwen2")
    ours = load_model(save(model, tmp_path, max_shard_size="40KB"))
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert_agrees(logits_in_chunks(ours, ids, (24,)), theirs(model, ids))
