"""GGUF files: config, weights (dequantised to fp32) and the embedded tokenizer's data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor

from engine.errors import CheckpointError
from engine.models.config import ModelConfig
from engine.models.loader.base import Checkpoint

_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
_ROTATED = re.compile(r"\.(q|k)_proj\.(weight|bias)$")
_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
_CONFIG_KEYS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
}


class GgufCheckpoint(Checkpoint):
    """One memory-mapped file; tensors appear under their Hugging Face names and layout."""

    def __init__(self, file: Path) -> None:
        self.source = str(file)
        reader = _open(file)
        self.metadata: Mapping[str, object] = {
            key: field.contents() for key, field in reader.fields.items()
        }
        self.config = _read_config(self.metadata, reader, self.source)
        self._tensors = {_hf_name(t.name, self.source): t for t in reader.tensors}

    def names(self) -> Iterable[str]:
        return self._tensors.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        # GGUF lists the fastest axis first.
        return tuple(int(size) for size in reversed(self._tensors[name].shape))

    def where(self, name: str) -> str:
        return self.source

    def tensor(self, name: str) -> Tensor:
        stored = self._tensors[name]
        try:
            values = gguf.dequantize(stored.data, stored.tensor_type)
        except NotImplementedError:
            raise CheckpointError(
                f"{self.source}: {name} is quantised as {stored.tensor_type.name}, "
                "which cannot be dequantised here; choose a Q4_1, Q8_0 or F16 file"
            ) from None
        tensor = torch.from_numpy(np.array(values, dtype=np.float32)).reshape(self.shape(name))
        rotated = _ROTATED.search(name)
        if rotated is not None and self.config.family == "llama":
            heads = self.config.heads if rotated.group(1) == "q" else self.config.kv_heads
            return _halves_from_pairs(tensor, heads)
        return tensor


def _halves_from_pairs(tensor: Tensor, heads: int) -> Tensor:
    """Rows of each head from (0, 1), (2, 3), ... pairs to the (i, i + E/2) pairs of our rotation.

    Files of the llama architecture store q and k for a rotation of neighbouring rows.
    """
    rest = tensor.shape[1:]
    return tensor.view(heads, -1, 2, *rest).transpose(1, 2).reshape(tensor.shape)


def _open(file: Path) -> gguf.GGUFReader:
    if not file.is_file():
        raise CheckpointError(f"{file} does not exist; give the path of a .gguf file")
    try:
        return gguf.GGUFReader(file)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise CheckpointError(
            f"{file} ({file.stat().st_size} bytes) is truncated or no GGUF file ({error}); "
            "download it again"
        ) from None


def _hf_name(name: str, source: str) -> str:
    layer = _LAYER.fullmatch(name)
    if layer is not None and layer.group(2) in _IN_LAYER:
        number, part, kind = layer.groups()
        return f"model.layers.{number}.{_IN_LAYER[part]}.{kind}"
    if name in _TOP:
        return _TOP[name]
    raise CheckpointError(
        f"{source}: tensor {name} has no counterpart in a Llama, Qwen2 or Qwen3 model; "
        "choose another file"
    )


def _read_config(
    metadata: Mapping[str, object], reader: gguf.GGUFReader, source: str
) -> ModelConfig:
    architecture = str(metadata.get("general.architecture"))
    if architecture not in _ARCHITECTURES:
        raise CheckpointError(
            f"{source}: architecture {architecture!r} is not supported; choose a file of "
            + ", ".join(_ARCHITECTURES)
        )
    if f"{architecture}.rope.scaling.type" in metadata and (
        metadata[f"{architecture}.rope.scaling.type"] != "none"
    ):
        raise CheckpointError(
            f"{source}: scaled rotary embeddings are not read from GGUF files; "
            "use the model's safetensors folder"
        )
    raw: dict[str, object] = {
        hf: metadata[f"{architecture}.{key}"]
        for key, hf in _CONFIG_KEYS.items()
        if f"{architecture}.{key}" in metadata
    }
    tensors = {tensor.name for tensor in reader.tensors}
    tokens = metadata.get("tokenizer.ggml.tokens")
    raw["vocab_size"] = metadata.get(
        f"{architecture}.vocab_size", len(tokens) if isinstance(tokens, list) else None
    )
    raw["architectures"] = [_ARCHITECTURES[architecture]]
    raw["tie_word_embeddings"] = "output.weight" not in tensors
    raw["attention_bias"] = architecture != "qwen2" and "blk.0.attn_q.bias" in tensors
    raw["eos_token_id"] = metadata.get("tokenizer.ggml.eos_token_id")
    return ModelConfig.from_hf(raw, source=source)
