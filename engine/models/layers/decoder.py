"""DecoderLayer: attention and MLP around a residual stream.

T rows   H hidden
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from engine.attention.base import AttentionPlan
from engine.models.config import ModelConfig
from engine.models.layers.attention import Attention
from engine.models.layers.mlp import Mlp
from engine.models.layers.norm import RMSNorm
from engine.models.layers.rotary import Angles
from engine.models.weights import Axis, WeightSlot, under


class DecoderLayer(nn.Module):
    """Attention and MLP, each on a normalised copy of the residual stream.

    `norm_input=False` is EAGLE-1's first layer, which reads its input as it comes.
    """

    def __init__(
        self, config: ModelConfig, *, role: str, layer: int, norm_input: bool = True
    ) -> None:
        super().__init__()
        hidden = Axis(f"{role}_hidden", config.hidden)
        self.input_norm = RMSNorm(hidden, eps=config.norm_eps) if norm_input else None
        self.attention = Attention(config, role=role, layer=layer, width=hidden)
        self.post_norm = RMSNorm(hidden, eps=config.norm_eps)
        self.mlp = Mlp(config, role=role)

    def forward(self, x_TH: Tensor, angles: Angles, plan: AttentionPlan) -> Tensor:
        """(T, H) -> (T, H)."""
        read_TH = x_TH if self.input_norm is None else self.input_norm(x_TH)
        x_TH = x_TH + self.attention(read_TH, angles, plan)
        return x_TH + self.mlp(self.post_norm(x_TH))

    def weights(self) -> Iterator[WeightSlot]:
        """Slots named as in a checkpoint's `layers.N`."""
        if self.input_norm is not None:
            yield from under("input_layernorm", self.input_norm.weights())
        yield from under("self_attn", self.attention.weights())
        yield from under("post_attention_layernorm", self.post_norm.weights())
        yield from under("mlp", self.mlp.weights())
