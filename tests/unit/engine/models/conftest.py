"""Tiny random Hugging Face models, saved as a checkpoint would be, and a cache to run ours on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

from engine.attention.base import Ragged
from engine.attention.sdpa import SdpaBackend
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.models.base import LanguageModel

_FAMILIES = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
}


def reference(family: str, **changes: object) -> transformers.PreTrainedModel:
    """A seeded tiny model of the family; weights wide enough that logits are far from zero."""
    config_class, model_class = _FAMILIES[family]
    sizes: dict[str, object] = {
        "vocab_size": 131,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 128,
        "initializer_range": 0.2,
        "rms_norm_eps": 1e-5,
    }
    if family != "qwen3":
        sizes["head_dim"] = 8
    sizes.update(changes)
    torch.manual_seed(7)
    model = model_class(config_class(**sizes)).eval().float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def save(model: transformers.PreTrainedModel, folder: Path, **options: object) -> Path:
    """The folder with config.json and safetensors that `model` is saved to."""
    model.save_pretrained(folder, **options)
    return folder


@torch.inference_mode()
def logits_in_chunks(model: LanguageModel, ids: Tensor, chunks: tuple[int, ...]) -> Tensor:
    """(T, V): the logits of one request, prefilled over a paged cache in chunks of these sizes."""
    length = len(ids)
    table = RequestTable(rows=3, columns=length, device="cpu")
    table.take_row()
    row = table.take_row()
    # Scattered slots: nothing may rely on neighbours lying beside each other.
    slots = (torch.randperm(2 * length, generator=torch.Generator().manual_seed(1)) + 1)[:length]
    table.write(row, 0, slots.tolist())
    pool = KVPool(model.config, num_slots=2 * length + 1, dtype=torch.float32, device="cpu")
    backend = SdpaBackend(pool, table)
    parts: list[Tensor] = []
    start = 0
    for size in chunks:
        plan = backend.plan_ragged(
            Ragged(req_rows=(row,), prefix_lens=(start,), extend_lens=(size,))
        )
        positions = torch.arange(start, start + size)
        hidden = model(ids[start : start + size], positions, plan)
        parts.append(model.logits(hidden.rows_TH))
        start += size
    assert start == length, "the chunks cover the text"
    return torch.cat(parts)


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(0, 131, (24,), generator=torch.Generator().manual_seed(3))
