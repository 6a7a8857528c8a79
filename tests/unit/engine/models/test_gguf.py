"""GGUF: names, layout and tokenizer, on tiny files and on SmolLM2 itself."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from engine.errors import CheckpointError
from engine.models.load import load_model, open_checkpoint
from engine.models.loader.gguf import GgufCheckpoint
from engine.tokenizer import load_tokenizer

from .conftest import logits_in_chunks, reference

_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_TOP = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def gguf_name(name: str) -> str:
    if name in _TOP:
        return _TOP[name]
    _, _, layer, rest = name.split(".", 3)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{_NAMES[part]}.{kind}"


def pairs_from_halves(values: np.ndarray, heads: int) -> np.ndarray:
    """How a converter stores q and k of the llama architecture: rotation pairs side by side."""
    rest = values.shape[1:]
    return values.reshape(heads, 2, -1, *rest).swapaxes(1, 2).reshape(values.shape)


def write(model: transformers.PreTrainedModel, file: Path, family: str) -> Path:
    config = model.config
    writer = gguf.GGUFWriter(file, family)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(model.model.layers[0].self_attn.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    for name, tensor in model.state_dict().items():
        values = tensor.numpy()
        if family == "llama" and ".q_proj." in name:
            values = pairs_from_halves(values, config.num_attention_heads)
        if family == "llama" and ".k_proj." in name:
            values = pairs_from_halves(values, config.num_key_value_heads)
        writer.add_tensor(gguf_name(name), np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_families(family: str, ids: Tensor, tmp_path: Path) -> None:
    model = reference(family)
    ours = load_model(write(model, tmp_path / "model.gguf", family))
    with torch.inference_mode():
        wanted = model(ids[None]).logits[0]
    got = logits_in_chunks(ours, ids, (24,))
    assert (got - wanted).abs().max() / wanted.abs().max() < 1e-4


def test_truncated_file(tmp_path: Path) -> None:
    file = write(reference("llama"), tmp_path / "model.gguf", "llama")
    whole = file.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 300, 3, 0):
        file.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"model\.gguf .* truncated .* download it again"):
            GgufCheckpoint(file)


def test_not_a_gguf_file(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"not a model at all, though long enough to have a header" * 4)
    with pytest.raises(CheckpointError, match=r"no GGUF file"):
        GgufCheckpoint(file)


def test_unknown_architecture(tmp_path: Path) -> None:
    file = write(reference("llama"), tmp_path / "model.gguf", "gemma")
    with pytest.raises(CheckpointError, match="architecture 'gemma' is not supported"):
        GgufCheckpoint(file)


@pytest.mark.network
def test_smollm2_logits_agree_with_transformers(smollm2: Path) -> None:
    config, checkpoint = open_checkpoint(smollm2)
    ours = load_model(smollm2, length=512)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=config.vocab,
            hidden_size=config.hidden,
            intermediate_size=config.ffn,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope.theta},
            rms_norm_eps=config.norm_eps,
            tie_word_embeddings=True,
        )
    ).eval()
    weights = {name: checkpoint.tensor(name) for name in checkpoint.names()}
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights)
    ids = torch.randint(20, config.vocab, (40,), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        wanted = model(ids[None]).logits[0]
    got = logits_in_chunks(ours, ids, (17, 23))
    assert (got - wanted).abs().max() / wanted.abs().max() < 1e-4
    # The same mistake on both sides (a wrong rotation of q and k) would still agree: ask for sense.
    tokenizer = load_tokenizer(checkpoint, config)
    prompt = torch.tensor(tokenizer.encode("The capital of France is the city of"))
    last = logits_in_chunks(ours, prompt, (len(prompt),))[-1]
    assert tokenizer.decode([int(last.argmax())]) == " Paris"
