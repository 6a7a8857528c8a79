"""The one place where a width is chosen: Dims from both configs, held against loaded weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.config import EngineConfig
from engine.errors import WidthError
from engine.models.config import ModelConfig
from engine.models.eagle_config import EagleConfig
from engine.models.llama import CausalLM
from engine.models.weights import WeightSlot
from shapecheck import Dims, check_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much the engine keeps: table rows and columns, KV slots; pad row and slot included."""

    req_rows: int
    max_context: int
    num_slots: int


def build_dims(
    config: EngineConfig, target: ModelConfig, draft: ModelConfig | None, memory: Memory
) -> Dims:
    """The Dims of this engine; raises ShapecheckError when the pair cannot work."""
    dims = Dims.from_configs(
        _raw(target),
        None if draft is None else _raw(draft),
        algorithm=config.models,
        num_steps=config.steps(),
        topk=config.topk,
        num_draft_tokens=config.num_draft_tokens if config.models != "none" else None,
        num_aux=draft.num_aux if isinstance(draft, EagleConfig) and draft.aux_layers else None,
    )
    if config.models == "standalone" and dims["draft_vocab"] != dims["target_vocab"]:
        raise WidthError.of(
            f"draft_vocab is {dims['draft_vocab']} ({dims.origin('draft_vocab')}) and target_vocab "
            f"is {dims['target_vocab']} ({dims.origin('target_vocab')}): ids of one table may be "
            "missing in the other; choose a draft with as many ids",
            expected="target_vocab",
            found="draft_vocab",
        )
    tail = max(config.steps() - 1, 0) * config.topk
    dims = dims.with_sizes(
        req_rows=(memory.req_rows, "max_requests + pad row"),
        max_context=(memory.max_context, "max_context + verify window"),
        num_slots=(memory.num_slots, "num_slots + pad slot"),
        draft_tail=(tail, f"(num_steps-1)*topk = {tail}" if tail else "no second draft step"),
    )
    if draft is None:
        # Without a draft model what is proposed are the target's own ids.
        vocab, origin = dims["target_vocab"], f"target_vocab: {dims.origin('target_vocab')}"
        dims = dims.with_sizes(draft_vocab=(vocab, origin))
    # The engine computes in one dtype, whatever the checkpoints were saved in.
    return Dims(
        sizes=dims.sizes,
        target_dtype=config.dtype,
        draft_dtype=None if draft is None else config.dtype,
    )


def _raw(config: ModelConfig) -> Mapping[str, object]:
    """The config as read, with the sizes that other formats leave implicit."""
    sizes: dict[str, object] = {
        "vocab_size": config.vocab,
        "hidden_size": config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.ffn,
        "max_position_embeddings": config.max_positions,
    }
    if isinstance(config, EagleConfig):
        sizes["draft_vocab_size"] = config.draft_vocab
        sizes["target_hidden_size"] = config.target_hidden
    return {**config.raw, **sizes}


def check_weights(dims: Dims, slots: Iterable[WeightSlot]) -> None:
    """Every weight has the axes its slot names; ShapeContractError says which one has not."""
    for slot in slots:
        shape = " ".join(axis.name for axis in slot.axes)
        check_shape(slot.destination, shape, dims, name=slot.name)


def check_layers(dims: Dims, model: CausalLM) -> None:
    """The loaded target has the layers of `dims`; WidthError when it has not."""
    found = len(model.layers)
    if found != dims["target_layers"]:
        raise WidthError.of(
            f"{model.config.source} was loaded with {found} layers, and target_layers is "
            f"{dims['target_layers']} ({dims.origin('target_layers')}); use the config that was "
            "saved with these weights",
            expected="target_layers",
            found=found,
        )
