"""Seeded tiny models: a byte-level pair with two hidden sizes, made in milliseconds."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.models.config import ModelConfig

BYTE_VOCAB = 258  # 256 bytes, end of text, beginning of text


def tiny_config(*, hidden: int, layers: int = 2, heads: int = 4, kv_heads: int = 2) -> ModelConfig:
    """A byte-level Llama of this hidden size; `hidden` is a multiple of 2*heads."""
    return ModelConfig.from_hf(
        {
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": BYTE_VOCAB,
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "max_position_embeddings": 512,
            "eos_token_id": 256,
        },
        source=f"<tiny hidden={hidden}>",
    )


@torch.inference_mode()
def seed_weights(model: nn.Module, seed: int, *, scale: float = 1.0) -> None:
    """Every parameter is drawn from `seed`, the same on every device and for every dtype.

    Matrices keep the variance of what passes through them, so that logits are spread out and
    greedy choices are not decided by rounding.
    """
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
        parameter.data.copy_(_scaled(drawn, scale))


def _scaled(drawn: Tensor, scale: float) -> Tensor:
    if drawn.ndim == 1:
        return 1.0 + 0.1 * drawn
    return drawn * (scale * drawn.shape[-1] ** -0.5)
