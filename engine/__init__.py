"""A draft/verify engine for speculative decoding whose every hand-over holds a contract.

The names are resolved on first use, so that importing a part does not load all of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.errors import CheckpointError, EngineError
    from engine.llm import LLM, Output, Piece
    from engine.sampling import SamplingParams

__all__ = [
    "LLM",
    "CheckpointError",
    "EngineConfig",
    "EngineError",
    "Output",
    "Piece",
    "SamplingParams",
]

_HOME = {
    "LLM": "engine.llm",
    "CheckpointError": "engine.errors",
    "EngineConfig": "engine.config",
    "EngineError": "engine.errors",
    "Output": "engine.llm",
    "Piece": "engine.llm",
    "SamplingParams": "engine.sampling",
}


def __getattr__(name: str) -> object:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'engine' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
