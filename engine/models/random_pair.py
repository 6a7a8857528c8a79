"""Random pairs: models of given sizes whose weights are drawn where they will be used."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.backend import Backend
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.models.base import LanguageModel, StandaloneDraft
from engine.models.config import ModelConfig
from engine.models.llama import CausalLM
from engine.models.load import build_model
from engine.models.pair import ModelPair
from engine.tokenizer import Tokenizer

_SEEDS = {"target": 1, "draft": 2}


class NoTokenizer(Tokenizer):
    """Random weights have no language: prompts are ids, and every text is empty."""

    eos_ids = ()

    def __init__(self, vocab: int) -> None:
        self.vocab = vocab

    def encode(self, text: str) -> list[int]:
        raise EngineError("random weights have no tokenizer; give the prompt as token ids")

    def decode(self, ids: Sequence[int]) -> str:
        return ""


@torch.inference_mode()
def random_pair(target: ModelConfig, draft: ModelConfig | None, config: EngineConfig) -> ModelPair:
    """Models of these sizes with seeded random weights, a stand-alone draft if one is given.

    They are drawn on `config.device` in the compute dtype, and never exist on the host.
    """
    models: dict[str, CausalLM] = {}
    for role, shape in (("target", target), ("draft", draft)):
        if shape is None:
            continue
        model = build_model(
            shape,
            kind=Backend.of(config).language_model(shape.family),
            role="draft" if role == "draft" else "target",
            dtype=config.torch_dtype,
            device=config.device,
            length=config.columns(target),
        )
        draw_weights(model, _SEEDS[role])
        models[role] = model
    small = models.get("draft")
    return ModelPair(
        target=models["target"],
        draft=None if small is None else StandaloneDraft(small),
        tokenizer=NoTokenizer(target.vocab),
    )


@torch.inference_mode()
def draw_weights(model: LanguageModel, seed: int) -> None:
    """Every parameter is drawn in place; equal seeds give equal weights on one kind of device.

    A matrix keeps the variance of what passes through it, so the residual stream of L layers
    grows like sqrt(L) and its norms stay finite in bf16.
    """
    generator = torch.Generator(model.device).manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.normal_(1.0, 0.1, generator=generator)
        else:
            parameter.normal_(0.0, parameter.shape[-1] ** -0.5, generator=generator)
