"""What the engine's tests share: tiny engines, drafts of every quality, references."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor, nn

from engine.config import EngineConfig
from engine.llm import LLM
from engine.models.base import StandaloneDraft
from engine.models.fetch import SMOLLM2, fetch
from engine.models.llama import CausalLM
from engine.models.pair import ModelPair, tiny_pair
from shapecheck.config import Level
from tests.bench.levels import at_level


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `gpu` need a device."""
    if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The real model's file, fetched once into the user's cache; tests using it are `network`."""
    return fetch(SMOLLM2)


# Chains and trees, shallow and deep, narrower and wider than the draft can fill.
SHAPES: dict[str, dict[str, object]] = {
    "chain of 1": {"num_steps": 1},
    "chain of 4": {"num_steps": 4},
    "tree": {"topk": 3, "num_steps": 3, "num_draft_tokens": 8},
    "deep narrow tree": {"topk": 2, "num_steps": 5, "num_draft_tokens": 4},
    "one level": {"topk": 4, "num_steps": 1, "num_draft_tokens": 5},
    "whole tree": {"topk": 2, "num_steps": 3, "num_draft_tokens": 11},
}
CHAINS = ("chain of 1", "chain of 4")


def every_proposer() -> list[tuple[str, str]]:
    """Each algorithm with each shape it can have."""
    drafted = [(name, shape) for name in ("standalone", "eagle", "eagle3") for shape in SHAPES]
    return [("ngram", shape) for shape in CHAINS] + drafted


def tiny(algorithm: str, **settings: object) -> LLM:
    """An engine of the seeded byte-level models; its draft is as good as garbage."""
    return LLM("tiny", algorithm=algorithm, **settings)


def drafted_by(draft: str, **settings: object) -> LLM:
    """A stand-alone pair whose draft is the target itself, or the target sharper or upside down."""
    config = EngineConfig.of(target="tiny", algorithm="standalone", **settings)
    pair = tiny_pair(config)
    other = pair.target
    # The least probable token becomes the most probable one, or the law almost certain.
    factor = {"oracle": 1.0, "adversarial": -1.0, "sharp": 12.0}[draft]
    if draft != "oracle":
        other = tiny_pair(config).target
        other.head.weight_VH = nn.Parameter(factor * other.head.weight_VH, requires_grad=False)
    models = ModelPair(target=pair.target, draft=StandaloneDraft(other), tokenizer=pair.tokenizer)
    return LLM.of(config, models)


def as_transformers(model: CausalLM) -> transformers.LlamaForCausalLM:
    """The same Llama with the same weights."""
    config = model.config
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=config.vocab,
            hidden_size=config.hidden,
            intermediate_size=config.ffn,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            rms_norm_eps=config.norm_eps,
            max_position_embeddings=config.max_positions,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope.theta},
            tie_word_embeddings=config.tied,
            bos_token_id=None,
            eos_token_id=None,
        )
    ).eval()
    weights = {slot.name: slot.destination for slot in model.weights()}
    if config.tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    theirs.load_state_dict(weights)
    return theirs


@torch.inference_mode()
def generate(model: transformers.LlamaForCausalLM, prompt: list[int], count: int) -> list[int]:
    """What transformers' greedy `generate` continues the prompt with."""
    ids = torch.tensor([prompt])
    out: Tensor = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=count,
        min_new_tokens=count,
        pad_token_id=0,
    )
    return out[0, len(prompt) :].tolist()


def cyclic(model: CausalLM, period: int) -> None:
    """Token t is always followed by t+1 within its group of `period`: every text is periodic."""
    with torch.inference_mode():
        for layer in model.layers:
            layer.attention.out.weight_OI.zero_()
            layer.mlp.down.weight_OI.zero_()
        model.norm.weight_H.fill_(1.0)
        ids = torch.arange(model.config.vocab)
        after = ids // period * period + (ids + 1) % period
        head = torch.empty_like(model.head.weight_VH)
        head[after] = model.embedding.weight_VH
        model.head.weight_VH.copy_(head)


def slots_add_up(llm: LLM) -> bool:
    """Free + leased + cached = pool."""
    memory, scheduler = llm.engine.memory, llm.engine.scheduler
    leases = [one.lease for one in scheduler.unfinished if one.lease is not None]
    owned = memory.leased(leases) + memory.cached
    allocator = memory.allocator
    return owned == allocator.owned and allocator.free + owned == allocator.capacity


@pytest.fixture
def full() -> Iterator[None]:
    """Contracts of the engine are enforced, invariants included, whatever the suite's level."""
    with at_level(Level.FULL):
        yield
