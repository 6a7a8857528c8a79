"""Seeded tiny models: a byte-level pair with two hidden sizes, made in milliseconds."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.eagle import Eagle1, Eagle3
from engine.models.eagle_config import EagleConfig, Version, eagle_config

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


def tiny_eagle_config(target: ModelConfig, *, version: Version) -> EagleConfig:
    """A one-layer head for a tiny target: EAGLE-3 has half its hidden size and vocabulary."""
    eagle3 = version == "eagle3"
    hidden = target.hidden // 2 if eagle3 else target.hidden
    raw: dict[str, object] = {
        "architectures": ["LlamaForCausalLMEagle3" if eagle3 else "LlamaForCausalLMEagle"],
        "vocab_size": target.vocab,
        "draft_vocab_size": target.vocab // 2 if eagle3 else target.vocab,
        "hidden_size": hidden,
        "target_hidden_size": target.hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": target.max_positions,
    }
    if eagle3:
        last = target.layers - 1
        raw["eagle_aux_hidden_state_layer_ids"] = [0, last // 2, last]
    return eagle_config(raw, target, version=version, source=f"<tiny {version} hidden={hidden}>")


@torch.inference_mode()
def seed_eagle(head: Eagle1 | Eagle3, seed: int) -> None:
    """Weights drawn from `seed`; an EAGLE-3 head scores target ids spread over the vocabulary."""
    seed_weights(head, seed)
    if isinstance(head, Eagle3):
        size = len(head.d2t)
        generator = torch.Generator().manual_seed(seed + 1)
        hot = torch.randperm(head.config.vocab, generator=generator)[:size].sort().values
        head.d2t.copy_(hot - torch.arange(size))


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
