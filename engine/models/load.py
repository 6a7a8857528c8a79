"""From a path to a model: reads the config, builds the class, fills every weight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from engine.errors import CheckpointError
from engine.models.base import Role
from engine.models.config import ModelConfig, read_config
from engine.models.llama import CausalLM
from engine.models.loader.base import Checkpoint
from engine.models.loader.gguf import GgufCheckpoint
from engine.models.loader.safetensors import SafetensorsCheckpoint
from engine.models.registry import MODELS
from engine.models.weights import fill


def open_checkpoint(path: Path) -> tuple[ModelConfig, Checkpoint]:
    """Config and weights of a Hugging Face folder or a `.gguf` file; CheckpointError if bad."""
    if path.suffix == ".gguf":
        checkpoint = GgufCheckpoint(path)
        return checkpoint.config, checkpoint
    return read_config(path), SafetensorsCheckpoint(path)


@torch.inference_mode()
def load_model(
    path: Path,
    *,
    role: Role = "target",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    length: int | None = None,
    aux_layers: tuple[int, ...] = (),
) -> CausalLM:
    """The model of `path` with every weight loaded; CheckpointError names what does not fit."""
    config, checkpoint = open_checkpoint(path)
    model = build_model(
        config, role=role, dtype=dtype, device=device, length=length, aux_layers=aux_layers
    )
    fill(model.weights(), checkpoint, source=config.source, redundant=model.redundant)
    return model


def build_model(
    config: ModelConfig,
    *,
    kind: Callable[..., CausalLM] | None = None,
    role: Role = "target",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    length: int | None = None,
    aux_layers: tuple[int, ...] = (),
) -> CausalLM:
    """The model of `config` with its weights allocated and not yet set; `kind` is its class."""
    kind = kind or MODELS[config.family]
    try:
        with torch.device(device):
            model = kind(config, role=role, length=length, aux_layers=aux_layers)
    except RuntimeError as error:  # a full host and a full GPU alike
        raise CheckpointError(
            f"{config.source}: {device} has no memory for a model of these sizes ({error}); "
            "check the config, or take a smaller model"
        ) from None
    # Only parameters take the compute dtype; the rotary table stays fp32.
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model.to(device).eval()
