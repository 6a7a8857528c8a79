"""peer_steps: the same forward in plain torch operations, as they are and compiled by Inductor.

Both attend over a contiguous cache, which is the easier layout, and write the new keys and values
into per-layer tensors: a slice of one large cache would be copied whole by a compiled forward.
The compiled region is one layer, called once for each: it takes the residual stream and what the
layer before adds to it, so that nothing is lost to the cut, and it compiles in a tenth of the time.

T tokens   Q query heads   C key/value heads   E head width   X committed and new columns
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bench.replay import capture, replay_ms
from tests.bench.attention_peers import ATTENTION, Attend
from tests.bench.fused_step import FusedStep
from tests.bench.shapes import LayerWeights, Shape, Weights, rotary_tables

# With coordinate descent a product of one row becomes a reduction of Inductor's own, tuned.
RECIPES: Mapping[str, dict[str, bool]] = {
    "products by cuBLAS": {},
    "coordinate descent": {"coordinate_descent_tuning": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A compiled forward, captured, and by which recipe; `tried` are all, in milliseconds.

    A replay writes `logits`, f32 (T, vocab).
    """

    graph: torch.cuda.CUDAGraph
    logits: Tensor
    recipe: str
    tried: dict[str, float]


class PeerStep:
    """Weights, ids and a contiguous cache behind torch operations."""

    def __init__(
        self,
        shape: Shape,
        weights: Weights,
        *,
        ids_T: Tensor,
        positions_T: Tensor,
        keys: list[Tensor],
        values: list[Tensor],
        tables: tuple[Tensor, Tensor],
    ) -> None:
        self.shape, self.weights = shape, weights
        self.ids_T, self.keys, self.values = ids_T, keys, values
        dtype, tokens = weights.table.dtype, len(ids_T)
        self.cos, self.sin = (table[positions_T].unsqueeze(1).to(dtype) for table in tables)
        columns = keys[0].shape[1]
        seen = torch.ones(tokens, columns, dtype=torch.bool, device=ids_T.device)
        self.seen_TX = seen.tril(columns - tokens)
        self.nothing_TH = torch.zeros(tokens, shape.hidden, dtype=dtype, device=ids_T.device)
        self.attend: Attend = ATTENTION["sdpa"]

    @classmethod
    def of(cls, step: FusedStep) -> PeerStep:
        """The same step as the fused one, its cache laid out in order."""
        order = torch.cat((step.table_PM[1], step.slot_T))
        return cls(
            step.shape,
            step.weights,
            ids_T=step.id_T,
            positions_T=step.position_T,
            keys=[keys[order].transpose(0, 1).contiguous() for keys in step.keys],
            values=[values[order].transpose(0, 1).contiguous() for values in step.values],
            tables=(step.cos, step.sin),
        )

    @classmethod
    def drawn(cls, shape: Shape, weights: Weights, *, tokens: int, context: int) -> PeerStep:
        """Random ids behind a random cache of `context` columns."""
        device, dtype = weights.table.device, weights.table.dtype
        size = (shape.kv_heads, context + tokens, shape.head_width)
        return cls(
            shape,
            weights,
            ids_T=torch.randint(0, shape.vocab, (tokens,), device=device),
            positions_T=context + torch.arange(tokens, device=device),
            keys=[torch.randn(size, device=device, dtype=dtype) for _ in weights.layers],
            values=[torch.randn(size, device=device, dtype=dtype) for _ in weights.layers],
            tables=rotary_tables(context + tokens, shape.head_width, device=str(device)),
        )

    def layer(
        self, x_TH: Tensor, added_TH: Tensor, weights: LayerWeights, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The stream after attention, and what the MLP adds to it."""
        shape, tokens = self.shape, x_TH.shape[0]
        x_TH = x_TH + added_TH
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
        mixed_QTE = self.attend(q_TQE.transpose(0, 1), keys, values, self.seen_TX)
        mixed_TQ = mixed_QTE.transpose(0, 1).reshape(tokens, -1)
        x_TH = x_TH + F.linear(mixed_TQ, weights.out)
        normed = F.rms_norm(x_TH, (shape.hidden,), weights.ffn_gain, shape.eps)
        gate, up = F.linear(normed, weights.gate_up).chunk(2, dim=-1)
        return x_TH, F.linear(F.silu(gate) * up, weights.down)

    def head(self, x_TH: Tensor, added_TH: Tensor) -> Tensor:
        """Logits (T, vocab) f32."""
        normed = F.rms_norm(
            x_TH + added_TH, (self.shape.hidden,), self.weights.final_gain, self.shape.eps
        )
        return F.linear(normed, self.weights.head).float()

    def plain(self) -> Tensor:
        """Logits (T, vocab) f32, one kernel an operation."""
        return self._forward(self.layer, self.head)

    def compiled(
        self, options: Mapping[str, bool], *, backend: str = "inductor"
    ) -> Callable[[], Tensor]:
        """The plain forward, its layer and its head each compiled once."""
        torch._dynamo.reset()
        given = dict(options) if backend == "inductor" else None
        layer, head = (
            torch.compile(part, backend=backend, options=given, fullgraph=True, dynamic=False)
            for part in (self.layer, self.head)
        )
        return lambda: self._forward(layer, head)

    def best_compiled(self, *, feed_back: bool = False) -> Compiled:
        """The fastest of the recipes with the fastest attention, as a captured graph.

        `feed_back` makes each replay go on with the token that it found most probable.
        """
        self.attend = self._best_attention()
        graphs: dict[str, torch.cuda.CUDAGraph] = {}
        logits: dict[str, Tensor] = {}
        tried: dict[str, float] = {}
        for name, options in RECIPES.items():
            run = self.compiled(options)

            def step(run: Callable[[], Tensor] = run, name: str = name) -> None:
                logits[name] = run()
                if feed_back:
                    self.ids_T.copy_(logits[name].argmax(dim=-1))

            graphs[name] = capture(step)
            tried[name] = replay_ms(graphs[name], repeats=40)
        best = min(tried, key=lambda name: tried[name])
        return Compiled(graph=graphs[best], logits=logits[best], recipe=best, tried=tried)

    def _forward(
        self,
        layer: Callable[..., tuple[Tensor, Tensor]],
        head: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        x_TH, added_TH = F.embedding(self.ids_T, self.weights.table), self.nothing_TH
        for weights, keys, values in zip(self.weights.layers, self.keys, self.values, strict=True):
            x_TH, added_TH = layer(x_TH, added_TH, weights, keys, values)
        return head(x_TH, added_TH)

    def _best_attention(self) -> Attend:
        """The contender whose graph of one layer's attention is the fastest on this device."""
        shape, keys, values = self.shape, self.keys[0], self.values[0]
        size = (shape.heads, len(self.ids_T), shape.head_width)
        query = torch.randn(size, device=keys.device, dtype=keys.dtype)
        times: dict[str, float] = {}
        for name, attend in ATTENTION.items():
            # A few in a row: one alone would time the launch of the graph.
            graph = capture(
                lambda attend=attend: [attend(query, keys, values, self.seen_TX) for _ in range(16)]
            )
            times[name] = replay_ms(graph)
        return ATTENTION[min(times, key=lambda name: times[name])]
