"""EAGLE heads: widths from both configs, what recurs, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.attention.base import AttentionPlan
from engine.errors import CheckpointError
from engine.models.eagle import Eagle1, Eagle3
from engine.models.eagle_config import EagleConfig, eagle_config
from engine.models.llama import CausalLM
from engine.models.load import build_model
from engine.models.seeded import seed_eagle, seed_weights, tiny_config, tiny_eagle_config


class Echo(AttentionPlan):
    """Attention that sees nothing but the row itself."""

    def attend(self, layer: int, q_TQE: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> Tensor:
        return v_TCE.repeat_interleave(q_TQE.shape[1] // v_TCE.shape[1], dim=1)


@pytest.fixture
def target() -> CausalLM:
    model = build_model(tiny_config(hidden=64, layers=6), aux_layers=(0, 2, 5))
    assert isinstance(model, CausalLM)
    seed_weights(model, 1)
    return model


def config_of(target: CausalLM, version: str, **changes: object) -> EagleConfig:
    tiny = tiny_eagle_config(target.config, version=version)
    return eagle_config({**tiny.raw, **changes}, target.config, version=version, source="head")


@torch.inference_mode()
def test_target_keeps_the_inputs_of_the_named_layers(target: CausalLM) -> None:
    ids, positions = torch.tensor([5, 6, 7]), torch.arange(3)
    hidden = target(ids, positions, Echo())
    assert hidden.aux_TX is not None
    assert hidden.aux_TX.shape == (3, 3 * 64)
    first, third, last = hidden.aux_TX.chunk(3, dim=-1)
    x = target.embedding(ids)
    torch.testing.assert_close(first, x)
    for number, layer in enumerate(target.layers):
        if number == 2:
            torch.testing.assert_close(third, x)
        if number == 5:
            torch.testing.assert_close(last, x)
        x = layer(x, target.rotary(positions, x.dtype), Echo())
    torch.testing.assert_close(hidden.rows_TH, target.norm(x))


@torch.inference_mode()
def test_eagle3_widths(target: CausalLM) -> None:
    head = Eagle3(tiny_eagle_config(target.config, version="eagle3"), target, length=64)
    seed_eagle(head, 2)
    assert head.fc.weight_OI.shape == (32, 3 * 64), "fc reads num_aux target layers"
    assert head.layer.attention.qkv.width.size == 2 * 32
    assert len(head.d2t) == head.head.out_features == 129
    recurrent = head.project(torch.randn(4, 192))
    assert recurrent.shape == (4, 32)
    rows = head(torch.tensor([1, 2, 3, 4]), torch.arange(4), recurrent, Echo())
    assert rows.recurrent_TR is not None
    assert rows.recurrent_TR.shape == (4, 32)
    assert head.logits(rows.rows_TH).shape == (4, 129)
    torch.testing.assert_close(head.norm(rows.recurrent_TR), rows.rows_TH)


@torch.inference_mode()
def test_norm_output_makes_the_normalised_rows_recur(target: CausalLM) -> None:
    head = Eagle3(config_of(target, "eagle3", norm_output=True), target, length=64)
    seed_eagle(head, 2)
    rows = head(torch.tensor([1]), torch.arange(1), torch.randn(1, 32), Echo())
    assert rows.recurrent_TR is rows.rows_TH


def test_eagle3_offsets_are_distinct_target_ids(target: CausalLM) -> None:
    head = Eagle3(tiny_eagle_config(target.config, version="eagle3"), target, length=64)
    seed_eagle(head, 2)
    hot = (head.d2t + torch.arange(129)).tolist()
    assert hot == sorted(set(hot))
    assert hot[0] >= 0
    assert hot[-1] < 258
    assert hot != list(range(129)), "an identity would hide a forgotten map"


@torch.inference_mode()
def test_eagle1_shares_embedding_and_head(target: CausalLM) -> None:
    head = Eagle1(tiny_eagle_config(target.config, version="eagle"), target, length=64)
    seed_weights(head, 2)
    assert all("embed" not in name and "head" not in name for name, _ in head.named_parameters())
    assert head.fc.weight_OI.shape == (64, 128)
    hidden = torch.randn(2, 64)
    assert head.project(hidden) is hidden
    rows = head(torch.tensor([3, 4]), torch.arange(2), hidden, Echo())
    assert rows.recurrent_TR is rows.rows_TH
    torch.testing.assert_close(head.logits(rows.rows_TH), target.logits(rows.rows_TH))


def test_default_aux_layers(target: CausalLM) -> None:
    config = config_of(target, "eagle3", eagle_aux_hidden_state_layer_ids=None)
    assert config.aux_layers == (2, 3, 3)
    assert config.extend_width == 3 * 64


@pytest.mark.parametrize(
    ("version", "changes", "wanted"),
    [
        ("eagle3", {"target_hidden_size": 96}, "target_hidden_size is 96, .* has 64"),
        ("eagle3", {"vocab_size": 300}, "vocab_size is 300, .* has 258"),
        ("eagle3", {"eagle_aux_hidden_state_layer_ids": [2, 9]}, r"layers \[2, 9\], .* has 6"),
        ("eagle", {"hidden_size": 32, "target_hidden_size": 64}, "hidden_size is 32, .* has 64"),
        ("eagle", {"draft_vocab_size": 100}, "draft_vocab_size is 100, .* has 258"),
    ],
)
def test_head_of_another_target(
    target: CausalLM, version: str, changes: dict[str, object], wanted: str
) -> None:
    with pytest.raises(CheckpointError, match=wanted):
        config_of(target, version, **changes)


def test_slots_name_the_draft(target: CausalLM) -> None:
    head = Eagle3(tiny_eagle_config(target.config, version="eagle3"), target, length=64)
    axes = {slot.name: [str(axis) for axis in slot.axes] for slot in head.weights()}
    assert axes["fc.weight"] == ["draft_hidden=32", "num_aux*target_hidden=192"]
    assert axes["midlayer.self_attn.q_proj.weight"][1] == "2*draft_hidden=64"
    assert axes["lm_head.weight"] == ["draft_vocab=129", "draft_hidden=32"]
    assert axes["d2t"] == ["draft_vocab=129"]
    assert axes["embed_tokens.weight"] == ["target_vocab=258", "draft_hidden=32"]
