"""Published shapes: sizes of well-known models, for engines whose weights are random.

The numbers are those of the models' public `config.json`; no weight comes with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.config import as_path
from engine.errors import EngineError
from engine.models.config import ModelConfig, read_config

_LLAMA_3: Mapping[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
}


def _llama3(name: str, *, rope_factor: float, **sizes: object) -> ModelConfig:
    scaling = {
        "rope_type": "llama3",
        "factor": rope_factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    raw = {**_LLAMA_3, "rope_theta": 500000.0, "rope_scaling": scaling, **sizes}
    return ModelConfig.from_hf(raw, source=f"<{name}, random>")


PUBLISHED: Mapping[str, ModelConfig] = {
    "llama-8b": _llama3(
        "llama-8b",
        rope_factor=8.0,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
    ),
    "llama-1b": _llama3(
        "llama-1b",
        rope_factor=32.0,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        tie_word_embeddings=True,
    ),
}


def shape_named(name: str) -> ModelConfig:
    """The config of a published shape, or of a folder or config.json; EngineError for neither."""
    if name in PUBLISHED:
        return PUBLISHED[name]
    try:
        path = as_path(name)
    except EngineError:
        raise EngineError(
            f"shape {name!r} is neither one of {', '.join(PUBLISHED)} nor a config.json; check it"
        ) from None
    return read_config(path)
