"""Rotary position embedding: a table of angles by position, and its application.

T rows of the forward   M positions of the table   J heads   E head width   F = E/2 frequencies

A token's angle depends on its position alone, never on what else is in the batch: a cached key
stays valid, and splitting a text into chunks or drafting ahead cannot change a logit. `dynamic`
scaling is the one kind whose published form depends on the length seen so far; here position p is
rotated by the frequencies of length p+1, which is what decoding token by token gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.models.config import ModelConfig, RopeConfig


@dataclass(frozen=True, slots=True)
class Angles:
    """Cosine and sine of one forward's rows, shape (T, 1, F), computed once for all layers."""

    cos_T1F: Tensor
    sin_T1F: Tensor

    def rotate(self, x_TJE: Tensor) -> Tensor:
        """Every head turned to its row's position; pairs are (i, i + E/2)."""
        first, second = x_TJE.chunk(2, dim=-1)
        return torch.cat(
            (
                first * self.cos_T1F - second * self.sin_T1F,
                second * self.cos_T1F + first * self.sin_T1F,
            ),
            dim=-1,
        )


class Rotary(nn.Module):
    """The table of cos and sin for positions [0, length)."""

    cos_MF: Tensor
    sin_MF: Tensor

    def __init__(self, config: ModelConfig, *, length: int) -> None:
        super().__init__()
        # On the CPU whatever the default device: every device then reads the same angles.
        with torch.device("cpu"):
            angles_MF, scale = _angles(config, length)
        self.register_buffer("cos_MF", (angles_MF.cos() * scale).float(), persistent=False)
        self.register_buffer("sin_MF", (angles_MF.sin() * scale).float(), persistent=False)

    def forward(self, positions_T: Tensor, dtype: torch.dtype) -> Angles:
        """The angles of these positions, in the compute dtype."""
        cos_TF = self.cos_MF.index_select(0, positions_T)
        sin_TF = self.sin_MF.index_select(0, positions_T)
        return Angles(cos_TF.to(dtype).unsqueeze(1), sin_TF.to(dtype).unsqueeze(1))


def _angles(config: ModelConfig, length: int) -> tuple[Tensor, float]:
    positions_M = torch.arange(length, dtype=torch.float32)
    frequencies, scale = _KINDS[config.rope.kind](config)
    if config.rope.kind == "dynamic":
        return positions_M[:, None] * _dynamic(config, length), scale
    return positions_M[:, None] * frequencies, scale


def _base(theta: float, width: int) -> Tensor:
    return 1.0 / theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width)


def _default(config: ModelConfig) -> tuple[Tensor, float]:
    return _base(config.rope.theta, config.head_dim), 1.0


def _linear(config: ModelConfig) -> tuple[Tensor, float]:
    return _base(config.rope.theta, config.head_dim) / _factor(config), 1.0


def _dynamic(config: ModelConfig, length: int) -> Tensor:
    """(M, F): the frequencies of length p+1 for every position p."""
    width, factor = config.head_dim, _factor(config)
    seen_M = torch.arange(1, length + 1).clamp(min=config.max_positions)
    growth_M = factor * seen_M / config.max_positions - (factor - 1)
    theta_M = config.rope.theta * growth_M ** (width / (width - 2))
    exponents_F = torch.arange(0, width, 2, dtype=torch.float32) / width
    return 1.0 / theta_M[:, None] ** exponents_F


def _llama3(config: ModelConfig) -> tuple[Tensor, float]:
    """Long wavelengths are slowed by `factor`, short ones kept, those between blended."""
    rope, base_F = config.rope, _base(config.rope.theta, config.head_dim)
    low, high = rope.low_freq_factor, rope.high_freq_factor
    assert low is not None, "RopeConfig requires it"
    assert high is not None, "RopeConfig requires it"
    turns_F = _original(config) * base_F / (2 * math.pi)
    keep_F = ((turns_F - low) / (high - low)).clamp(0, 1)
    return base_F * (keep_F + (1 - keep_F) / _factor(config)), 1.0


def _yarn(config: ModelConfig) -> tuple[Tensor, float]:
    """Dimensions that turn often are kept, those that hardly turn interpolated, a ramp between."""
    rope, width = config.rope, config.head_dim
    base_F = _base(rope.theta, width)
    first = _yarn_dimension(rope.beta_fast or 32.0, config)
    last = _yarn_dimension(rope.beta_slow or 1.0, config)
    if rope.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    steps_F = torch.arange(width // 2, dtype=torch.float32)
    slowed_F = ((steps_F - first) / max(last - first, 1e-3)).clamp(0, 1)
    factor = _factor(config)
    return base_F * (1 - slowed_F + slowed_F / factor), _yarn_scale(rope, factor)


def _yarn_dimension(turns: float, config: ModelConfig) -> float:
    """The (fractional) frequency index that turns this often over the original context."""
    span = _original(config) / (turns * 2 * math.pi)
    return config.head_dim * math.log(span) / (2 * math.log(config.rope.theta))


def _yarn_scale(rope: RopeConfig, factor: float) -> float:
    """What cos and sin are multiplied by, so that attention keeps its temperature."""

    def scale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    if rope.attention_factor is not None:
        return rope.attention_factor
    if rope.mscale and rope.mscale_all_dim:
        return scale(rope.mscale) / scale(rope.mscale_all_dim)
    return scale(1.0)


def _original(config: ModelConfig) -> int:
    return config.rope.original or config.max_positions


def _factor(config: ModelConfig) -> float:
    if config.rope.factor is not None:
        return config.rope.factor
    return config.max_positions / _original(config)


_KINDS: dict[str, Callable[[ModelConfig], tuple[Tensor, float]]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _default,
    "llama3": _llama3,
    "yarn": _yarn,
}
