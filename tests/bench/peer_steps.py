"""peer_steps: the same forward in plain torch operations, as they are and compiled by Inductor.

Both attend over a contiguous cache, which is the easier layout, and write the new keys and values
into per-layer tensors: a slice of one large cache would be copied whole by a compiled forward.

T tokens   Q query heads   C key/value heads   E head width   X committed columns   W new columns
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.bench.fused_step import FusedStep
from tests.bench.shapes import LayerWeights


class PeerStep:
    """The weights, ids and cache of a FusedStep behind torch operations."""

    def __init__(self, step: FusedStep) -> None:
        self.step, self.shape = step, step.shape
        order = torch.cat((step.table_PM[1], step.slot_T))
        self.keys = [keys[order].transpose(0, 1).contiguous() for keys in step.keys]
        self.values = [values[order].transpose(0, 1).contiguous() for values in step.values]
        width = step.shape.head_width
        self.cos, self.sin = (
            table[step.position_T].unsqueeze(1).to(step.hidden.dtype)
            for table in (step.cos, step.sin)
        )
        context = step.table_PM.shape[1]
        seen = torch.ones(step.tokens, context + step.tokens, dtype=torch.bool, device=order.device)
        self.seen = seen.tril(context)
        assert width == self.keys[0].shape[-1], "one head width for all layers"

    def layer(self, x_TH: Tensor, weights: LayerWeights, keys: Tensor, values: Tensor) -> Tensor:
        """One decoder layer."""
        shape, tokens = self.shape, x_TH.shape[0]
        normed = F.rms_norm(x_TH, (shape.hidden,), weights.attention_gain, shape.eps)
        qkv = F.linear(normed, weights.qkv).view(tokens, -1, shape.head_width)
        qk, v_TCE = qkv.split((shape.heads + shape.kv_heads, shape.kv_heads), dim=1)
        low, high = qk.chunk(2, dim=-1)
        turned = torch.cat(
            (low * self.cos - high * self.sin, high * self.cos + low * self.sin), dim=-1
        )
        q_TQE, k_TCE = turned.split((shape.heads, shape.kv_heads), dim=1)
        keys[:, -tokens:] = k_TCE.transpose(0, 1)
        values[:, -tokens:] = v_TCE.transpose(0, 1)
        mixed = F.scaled_dot_product_attention(
            q_TQE.transpose(0, 1)[None], keys[None], values[None],
            attn_mask=self.seen if tokens > 1 else None, enable_gqa=True,
        )[0]  # fmt: skip
        x_TH = x_TH + F.linear(mixed.transpose(0, 1).reshape(tokens, -1), weights.out)
        normed = F.rms_norm(x_TH, (shape.hidden,), weights.ffn_gain, shape.eps)
        gate, up = F.linear(normed, weights.gate_up).chunk(2, dim=-1)
        return x_TH + F.linear(F.silu(gate) * up, weights.down)

    def plain(self) -> Tensor:
        """Logits (T, vocab) f32, one kernel an operation."""
        weights = self.step.weights
        x_TH = F.embedding(self.step.id_T, weights.table)
        for layer, keys, values in zip(weights.layers, self.keys, self.values, strict=True):
            x_TH = self.layer(x_TH, layer, keys, values)
        x_TH = F.rms_norm(x_TH, (self.shape.hidden,), weights.final_gain, self.shape.eps)
        return F.linear(x_TH, weights.table).float()

    def compiled(self) -> Callable[[], Tensor]:
        """The plain forward behind Inductor, kernels tuned by coordinate descent."""
        # Capturing is the caller's: Inductor's own graphs would nest inside it.
        options = {"coordinate_descent_tuning": True, "triton.cudagraphs": False}
        return torch.compile(self.plain, options=options, fullgraph=True, dynamic=False)
