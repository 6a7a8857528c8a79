"""ModelPair: target, draft and tokenizer of one engine, loaded and held against each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.backend import Backend
from engine.config import EngineConfig, as_path
from engine.models.base import DraftModel, StandaloneDraft
from engine.models.config import ModelConfig, read_config
from engine.models.eagle import Eagle1, Eagle3
from engine.models.eagle_config import EagleConfig, eagle_config
from engine.models.fetch import SMOLLM2, fetch
from engine.models.llama import CausalLM
from engine.models.load import build_model, open_checkpoint
from engine.models.loader.safetensors import SafetensorsCheckpoint
from engine.models.seeded import seed_eagle, seed_weights, tiny_config, tiny_eagle_config
from engine.models.weights import fill
from engine.tokenizer import ByteTokenizer, Tokenizer, load_tokenizer

TINY = "tiny"
_SEEDS = {"target": 1, "draft": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """`draft` is None for algorithms without one; an EAGLE head shares parts of the target."""

    target: CausalLM
    draft: DraftModel | None
    tokenizer: Tokenizer

    @property
    def draft_config(self) -> ModelConfig | None:
        """The config that the draft's widths come from."""
        return None if self.draft is None else self.draft.config


@torch.inference_mode()
def load_pair(config: EngineConfig) -> ModelPair:
    """The models that `config` names, with room for its context; raises EngineError.

    "smollm2" is SmolLM2-135M-Instruct, fetched on first use; "tiny" is a seeded byte-level model.
    """
    if config.target == TINY:
        return tiny_pair(config)
    path = _path(config.target)
    model_config, checkpoint = open_checkpoint(path)
    tokenizer = load_tokenizer(checkpoint, model_config)
    head = _head_config(config, model_config)
    target = _build(model_config, config, aux_layers=head.aux_layers if head else ())
    fill(target.weights(), checkpoint, source=model_config.source, redundant=target.redundant)
    return ModelPair(target=target, draft=_load_draft(config, head, target), tokenizer=tokenizer)


def tiny_pair(config: EngineConfig) -> ModelPair:
    """The seeded pair: hidden 64 for the target, 32 for a draft; weights come from fixed seeds."""
    model_config = tiny_config(hidden=64, layers=4)
    head = None
    if config.models == "eagle" or config.models == "eagle3":
        head = tiny_eagle_config(model_config, version=config.models)
    target = _build(model_config, config, aux_layers=head.aux_layers if head else ())
    seed_weights(target, _SEEDS["target"])
    draft: DraftModel | None = None
    if head is not None:
        draft = _build_head(head, config, target)
        seed_eagle(draft, _SEEDS["draft"])
    elif config.models == "standalone":
        small = _build(tiny_config(hidden=32), config, role="draft", reach=model_config)
        seed_weights(small, _SEEDS["draft"])
        draft = StandaloneDraft(small)
    return ModelPair(target=target, draft=draft, tokenizer=ByteTokenizer())


def _path(name: str) -> Path:
    return fetch(SMOLLM2) if name == "smollm2" else as_path(name)


def _head_config(config: EngineConfig, target: ModelConfig) -> EagleConfig | None:
    if config.models != "eagle" and config.models != "eagle3":
        return None
    assert config.draft is not None, "EngineConfig requires a draft"
    base = read_config(as_path(config.draft))
    return eagle_config(base.raw, target, version=config.models, source=base.source)


def _load_draft(
    config: EngineConfig, head: EagleConfig | None, target: CausalLM
) -> DraftModel | None:
    if config.draft is None:
        return None
    path = _path(config.draft)
    if head is not None:
        draft = _build_head(head, config, target)
        fill(draft.weights(), SafetensorsCheckpoint(path), source=head.source)
        return draft
    model_config, checkpoint = open_checkpoint(path)
    small = _build(model_config, config, role="draft", reach=target.config)
    fill(small.weights(), checkpoint, source=model_config.source, redundant=small.redundant)
    return StandaloneDraft(small)


def _build(
    model: ModelConfig,
    config: EngineConfig,
    *,
    role: str = "target",
    reach: ModelConfig | None = None,
    aux_layers: tuple[int, ...] = (),
) -> CausalLM:
    """The model, its weights not yet set; a draft has to reach as far as its target does."""
    return build_model(
        model,
        kind=Backend.of(config).language_model(model.family),
        role="draft" if role == "draft" else "target",
        dtype=config.torch_dtype,
        device=config.device,
        length=config.columns(model if reach is None else reach),
        aux_layers=aux_layers,
    )


def _build_head(head: EagleConfig, config: EngineConfig, target: CausalLM) -> Eagle1 | Eagle3:
    kind = {"eagle": Eagle1, "eagle3": Eagle3}[head.version]
    draft = kind(head, target, length=config.columns(target.config))
    for parameter in draft.parameters():
        parameter.data = parameter.data.to(config.torch_dtype)
    return draft.to(config.device).eval()
