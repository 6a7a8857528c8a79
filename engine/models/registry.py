"""Which class runs which family: one line for each."""

from __future__ import annotations

from collections.abc import Mapping

from engine.models.config import Family
from engine.models.llama import CausalLM

MODELS: Mapping[Family, type[CausalLM]] = {
    "llama": CausalLM,
    "qwen2": CausalLM,
    "qwen3": CausalLM,
}
