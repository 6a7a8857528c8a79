"""A bad checkpoint is refused by file, tensor and dimension, before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import CheckpointError
from engine.models.load import load_model

from .conftest import reference, save


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save(reference("llama"), tmp_path)


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return save(reference("llama"), tmp_path, max_shard_size="40KB")


def edit(folder: Path, **tensors: torch.Tensor | None) -> None:
    """Replace, add or (with None) remove tensors of the single file."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    for name, tensor in tensors.items():
        if tensor is None:
            del weights[name]
        else:
            weights[name] = tensor
    save_file(weights, file)


def edit_config(folder: Path, **values: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_model(folder)
    return str(caught.value)


def test_missing_tensor(folder: Path) -> None:
    edit(folder, **{"model.layers.1.mlp.up_proj.weight": None})
    text = refusal(folder)
    assert "model.layers.1.mlp.up_proj.weight is missing" in text
    assert "[target_ffn=80, target_hidden=48]" in text
    assert str(folder) in text


def test_missing_layer(folder: Path) -> None:
    edit_config(folder, num_hidden_layers=4)
    text = refusal(folder)
    assert "model.layers.3.input_layernorm.weight and 8 more tensors are missing" in text


def test_extra_tensor(folder: Path) -> None:
    edit(folder, **{"model.layers.0.self_attn.q_proj.bias": torch.zeros(48)})
    text = refusal(folder)
    assert "model.layers.0.self_attn.q_proj.bias is not part of the model" in text
    assert "model.safetensors" in text


def test_saved_rotary_buffer_is_no_error(folder: Path) -> None:
    edit(folder, **{"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(4)})
    assert load_model(folder).config.layers == 3


def test_head_saved_with_a_tied_model_is_no_error(tmp_path: Path) -> None:
    model = reference("llama", tie_word_embeddings=True)
    save(model, tmp_path)
    edit(tmp_path, **{"lm_head.weight": model.lm_head.weight.detach().clone()})
    assert load_model(tmp_path).config.tied


def test_wrong_shape_names_the_dimension(folder: Path) -> None:
    edit(folder, **{"model.layers.2.mlp.down_proj.weight": torch.zeros(48, 96)})
    text = refusal(folder)
    assert "model.layers.2.mlp.down_proj.weight has shape [48, 96]" in text
    assert "expected [target_hidden=48, target_ffn=80]" in text
    assert "dim 1: target_ffn is 80, the file has 96" in text
    assert "dim 0" not in text


def test_wrong_heads_name_the_product(folder: Path) -> None:
    edit_config(folder, num_key_value_heads=3)
    assert "target_kv_heads*target_head_dim is 24, the file has 16" in refusal(folder)


def test_wrong_rank(folder: Path) -> None:
    edit(folder, **{"model.norm.weight": torch.zeros(48, 1)})
    assert "model.norm.weight has shape [48, 1], expected [target_hidden=48]" in refusal(folder)


def test_nothing_is_loaded_from_a_bad_file(folder: Path) -> None:
    """Shapes are all checked first: no weight is set when one does not fit."""
    from engine.models.load import build_model, open_checkpoint
    from engine.models.weights import fill

    edit(folder, **{"lm_head.weight": torch.zeros(1, 48)})
    config, checkpoint = open_checkpoint(folder)
    model = build_model(config)
    with torch.inference_mode():
        for parameter in model.parameters():
            parameter.zero_()
    with pytest.raises(CheckpointError):
        fill(model.weights(), checkpoint, source="config.json")
    assert all(not parameter.any() for parameter in model.parameters())


@pytest.mark.parametrize("keep", [0, 5, 8, 100, 5000])
def test_truncated_file(folder: Path, keep: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    text = refusal(folder)
    assert "model.safetensors" in text
    assert "truncated" in text
    assert text.endswith("download it again")


def test_last_byte_missing_names_the_tensor(folder: Path) -> None:
    file = folder / "model.safetensors"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-1])
    text = refusal(folder)
    assert f"ends at byte {size} and the file has {size - 1}" in text
    assert "model.norm.weight" in text


@pytest.mark.parametrize("junk", [b"{nonsense", b"\xff\xfe\xfd\xfc", b"[1, 2]", b'{"a": 1}'])
def test_corrupt_header(folder: Path, junk: bytes) -> None:
    (folder / "model.safetensors").write_bytes(len(junk).to_bytes(8, "little") + junk)
    assert "model.safetensors: the header is corrupt" in refusal(folder)


def test_header_that_disagrees_with_its_data(folder: Path) -> None:
    """Right names and shapes, offsets that overlap: the reader refuses, and we say which file."""
    file = folder / "model.safetensors"
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["model.norm.weight"]["data_offsets"] = [0, 4]
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    assert "model.safetensors" in refusal(folder)


def test_absent_shard(sharded: Path) -> None:
    shard = sorted(sharded.glob("model-*.safetensors"))[1]
    shard.unlink()
    text = refusal(sharded)
    assert "model.safetensors.index.json names the shard " + shard.name in text
    assert "absent" in text


def test_index_that_misplaces_a_tensor(sharded: Path) -> None:
    index = sharded / "model.safetensors.index.json"
    raw = json.loads(index.read_text())
    first = sorted(set(raw["weight_map"].values()))[0]
    moved = next(name for name, shard in raw["weight_map"].items() if shard != first)
    raw["weight_map"][moved] = first
    index.write_text(json.dumps(raw))
    assert f"places {moved} in {first}, which does not hold it" in refusal(sharded)


def test_index_that_leaves_the_folder(sharded: Path) -> None:
    index = sharded / "model.safetensors.index.json"
    raw = json.loads(index.read_text())
    raw["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors"
    index.write_text(json.dumps(raw))
    assert "lies outside the folder" in refusal(sharded)


@pytest.mark.parametrize("text", ["", "{}", '{"weight_map": 3}', '{"weight_map": {"a": 1}}', "[]"])
def test_corrupt_index(sharded: Path, text: str) -> None:
    (sharded / "model.safetensors.index.json").write_text(text)
    assert "model.safetensors.index.json" in refusal(sharded)


def test_pickle_is_never_read(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    text = refusal(folder)
    assert "pytorch_model.bin is a pickle" in text
    assert "convert the model to model.safetensors" in text


def test_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "holds neither model.safetensors nor" in refusal(folder)


def test_no_folder(tmp_path: Path) -> None:
    assert "nowhere does not exist; give a folder" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (
            {"architectures": ["MambaForCausalLM"]},
            "architecture 'MambaForCausalLM' is not supported",
        ),
        ({"hidden_act": "gelu"}, "hidden_act: Input should be 'silu'"),
        ({"hidden_size": "wide"}, "hidden_size: Input should be a valid integer"),
        ({"num_hidden_layers": 0}, "num_hidden_layers: Input should be greater than 0"),
        ({"num_key_value_heads": 4}, "is not a multiple of num_key_value_heads=4"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "rope.rope_type"),
        ({"rope_parameters": {"rope_type": "linear"}}, "rope_type 'linear' needs factor"),
        ({"layer_types": ["sliding_attention"] * 3}, "sliding-window attention is not supported"),
        ({"use_sliding_window": True}, "sliding-window attention is not supported"),
    ],
    ids=str,
)
def test_bad_config(folder: Path, values: dict[str, object], wanted: str) -> None:
    edit_config(folder, **values)
    text = refusal(folder)
    assert wanted in text
    assert "config.json" in text


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_config_that_is_no_json(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    assert "config.json" in refusal(folder)


def test_codes_of_a_quantised_weight(folder: Path) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    edit(folder, **{name: torch.zeros(80, 48, dtype=torch.int32)})
    text = refusal(folder)
    assert f"{name} holds torch.int32" in text
    assert text.endswith("use a checkpoint that is not quantised")


def test_rope_that_is_no_mapping(folder: Path) -> None:
    edit_config(folder, rope_parameters=5)
    assert refusal(folder).endswith("rope_parameters is 5; give a mapping or null")


def test_config_that_is_a_folder(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    assert "config.json cannot be read" in refusal(folder)
