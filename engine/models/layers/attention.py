"""Attention: projections, head norms and rotation around a backend's attend.

T rows   H hidden   Q query heads   C key/value heads   E head width
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from engine.attention.base import AttentionPlan
from engine.models.config import ModelConfig
from engine.models.layers.linear import Linear
from engine.models.layers.norm import RMSNorm
from engine.models.layers.rotary import Angles
from engine.models.weights import Axis, WeightSlot, under


class Attention(nn.Module):
    """Self-attention of layer `layer`; `width` is what q, k and v read (EAGLE-3 reads 2*Hd)."""

    def __init__(self, config: ModelConfig, *, role: str, layer: int, width: Axis) -> None:
        super().__init__()
        self.layer = layer
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.head_dim = config.head_dim
        queries = Axis(f"{role}_heads*{role}_head_dim", config.heads * config.head_dim)
        keys = Axis(f"{role}_kv_heads*{role}_head_dim", config.kv_heads * config.head_dim)
        self.qkv = Linear(
            width, {"q_proj": queries, "k_proj": keys, "v_proj": keys}, bias=config.qkv_bias
        )
        hidden = Axis(f"{role}_hidden", config.hidden)
        self.out = Linear(queries, {"o_proj": hidden}, bias=config.o_bias)
        head = Axis(f"{role}_head_dim", config.head_dim)
        self.q_norm = RMSNorm(head, eps=config.norm_eps) if config.qk_norm else None
        self.k_norm = RMSNorm(head, eps=config.norm_eps) if config.qk_norm else None

    def forward(self, x: Tensor, angles: Angles, plan: AttentionPlan) -> Tensor:
        """(T, width) -> (T, H)."""
        # Every size is written out: -1 is ambiguous when an idle rank brings no rows.
        qkv = self.qkv(x).view(x.shape[0], self.heads + 2 * self.kv_heads, self.head_dim)
        qk, v_TCE = qkv.split((self.heads + self.kv_heads, self.kv_heads), dim=1)
        if self.q_norm is not None and self.k_norm is not None:
            q_TQE, k_TCE = qk.split((self.heads, self.kv_heads), dim=1)
            qk = torch.cat((self.q_norm(q_TQE), self.k_norm(k_TCE)), dim=1)
        # One rotation for queries and keys together: half the kernel launches.
        q_TQE, k_TCE = angles.rotate(qk).split((self.heads, self.kv_heads), dim=1)
        out_TQE = plan.attend(self.layer, q_TQE, k_TCE, v_TCE)
        return self.out(out_TQE.reshape(x.shape[0], self.heads * self.head_dim))

    def weights(self) -> Iterator[WeightSlot]:
        """Slots named as in a checkpoint's `self_attn`."""
        yield from self.qkv.weights()
        yield from self.out.weights()
        if self.q_norm is not None and self.k_norm is not None:
            yield from under("q_norm", self.q_norm.weights())
            yield from under("k_norm", self.k_norm.weights())
