"""fused_step: one forward of a few rows through the Triton kernels, as the engine's graphs run it.

T tokens   H query heads   J key/value heads   E head width   S splits   P requests' rows   M context
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.kernels.embedding import BLOCK_W, embed_rows
from engine.kernels.gated_rows import gated_rows
from engine.kernels.linear_rows import linear_rows
from engine.kernels.paged_attention import paged_attention
from engine.kernels.qkv_rows import qkv_rows
from engine.kernels.row_tile import RowTile, ScaledRows
from tests.bench.shapes import Shape, Weights, rotary_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """The tile of each of a layer's matrices and of the head, and the attention split."""

    qkv: RowTile
    out: RowTile
    gate_up: RowTile
    down: RowTile
    head: RowTile
    split: int = 64
    attention_warps: int = 4


class FusedStep:
    """A model, its paged cache and its buffers; `run` is what a CUDA graph captures."""

    def __init__(
        self, shape: Shape, weights: Weights, *, tokens: int, context: int, split: int = 64
    ) -> None:
        device, dtype = weights.table.device, weights.table.dtype
        self.shape, self.weights, self.tokens = shape, weights, tokens
        room = context + 64
        slots = room + 1
        cache = (slots, shape.kv_heads, shape.head_width)
        self.keys = [torch.randn(cache, device=device, dtype=dtype) for _ in weights.layers]
        self.values = [torch.randn(cache, device=device, dtype=dtype) for _ in weights.layers]
        self.table_PM = torch.zeros(2, room, device=device, dtype=torch.int32)
        self.table_PM[1] = torch.randperm(room, device=device).int() + 1
        self.row_B = torch.ones(1, device=device, dtype=torch.int64)
        self.prefix_B = torch.full((1,), context, device=device, dtype=torch.int64)
        self.position_T = context + torch.arange(tokens, device=device)
        self.slot_T = self.table_PM[1, context : context + tokens].long()
        self.visible_T = (1 << (torch.arange(tokens, device=device) + 1)) - 1
        self.id_T = torch.randint(0, shape.vocab, (tokens,), device=device)
        self.cos, self.sin = rotary_tables(room, shape.head_width, device=str(device))

        def buffer(*sizes: int, kind: torch.dtype = dtype) -> Tensor:
            return torch.full(sizes, float("nan"), device=device, dtype=kind)

        splits = -(-(context + tokens) // split)
        self.hidden = buffer(tokens, shape.hidden)
        self.scaled = buffer(tokens, shape.hidden)
        self.square: dict[int, Tensor] = {}
        self.query = buffer(tokens, shape.heads, shape.head_width)
        self.mixed = buffer(tokens, shape.heads, shape.head_width)
        self.part = buffer(tokens, shape.heads, splits, shape.head_width, kind=torch.float32)
        self.weight = buffer(tokens, shape.heads, splits, kind=torch.float32)
        self.act = buffer(tokens, shape.ffn)
        self.logits = buffer(tokens, shape.vocab, kind=torch.float32)

    def rows(self, programs: int) -> ScaledRows:
        """Returns the buffer of rows between two norms, for a producer of so many programs."""
        if programs not in self.square:
            self.square[programs] = torch.full(
                (self.tokens, programs), float("nan"), device=self.hidden.device
            )
        return ScaledRows(x_TI=self.scaled, square_TG=self.square[programs])

    def run(self, tiles: Tiles, *, chained: bool = True, skip: str = "") -> Tensor:
        """Returns the logits of the buffered ids, f32 (tokens, vocab); caches their keys and values."""
        shape, eps = self.shape, self.shape.eps
        layers = self.weights.layers
        rows = self.rows(-(-shape.hidden // BLOCK_W))
        after_out = self.rows(-(-shape.hidden // tiles.out.block_o))
        after_down = self.rows(-(-shape.hidden // tiles.down.block_o))
        gains = [layer.attention_gain for layer in layers[1:]] + [self.weights.final_gain]
        embed_rows(
            self.id_T, self.weights.table, layers[0].attention_gain, out_TW=self.hidden,
            next_rows=rows,
        )  # fmt: skip
        mixed_TI = self.mixed.view(self.tokens, -1)
        for layer, key, value, gain in zip(layers, self.keys, self.values, gains, strict=True):
            qkv_rows(
                rows, layer.qkv, tile=tiles.qkv, cos_PE=self.cos, sin_PE=self.sin,
                position_T=self.position_T, slot_T=self.slot_T, out_THE=self.query,
                key_CJE=key, value_CJE=value, eps=eps, chained=chained,
            )  # fmt: skip
            if skip != "attention":
                paged_attention(
                    self.query, key, value, table_PM=self.table_PM, row_B=self.row_B,
                    prefix_B=self.prefix_B, visible_T=self.visible_T, columns=self.tokens,
                    split=tiles.split, part_THSE=self.part, weight_THS=self.weight,
                    out_THE=self.mixed, warps=tiles.attention_warps, chained=chained,
                )  # fmt: skip
            linear_rows(
                mixed_TI, layer.out, tile=tiles.out, out_TO=self.hidden,
                residual_TO=self.hidden, next_gain_O=layer.ffn_gain, next_rows=after_out,
                chained=chained,
            )  # fmt: skip
            gated_rows(
                after_out, layer.gate_up, tile=tiles.gate_up, out_TF=self.act, eps=eps,
                chained=chained,
            )  # fmt: skip
            linear_rows(
                self.act, layer.down, tile=tiles.down, out_TO=self.hidden,
                residual_TO=self.hidden, next_gain_O=gain, next_rows=after_down, chained=chained,
            )  # fmt: skip
            rows = after_down
        return linear_rows(
            rows, self.weights.table, tile=tiles.head, out_TO=self.logits, eps=eps,
            chained=chained,
        )  # fmt: skip

    def reference(self) -> Tensor:
        """The same forward in float64 from the same cache, f64 (tokens, vocab)."""
        from engine.kernels.gated_rows import gated_rows_reference
        from engine.kernels.linear_rows import linear_rows_reference
        from engine.kernels.paged_attention import paged_attention_reference
        from engine.kernels.qkv_rows import qkv_rows_reference

        shape, eps = self.shape, self.shape.eps
        hidden = self.weights.table[self.id_T].double()
        for layer, key, value in zip(self.weights.layers, self.keys, self.values, strict=True):
            query, new_key, new_value = qkv_rows_reference(
                hidden, layer.qkv.double(), cos_PE=self.cos, sin_PE=self.sin,
                position_T=self.position_T, heads=shape.heads, kv_heads=shape.kv_heads,
                gain_I=layer.attention_gain.double(), eps=eps,
            )  # fmt: skip
            key, value = key.double(), value.double()
            key[self.slot_T], value[self.slot_T] = new_key, new_value
            mixed = paged_attention_reference(
                query, key, value, table_PM=self.table_PM, row_B=self.row_B,
                prefix_B=self.prefix_B, visible_T=self.visible_T, columns=self.tokens,
            )  # fmt: skip
            hidden = hidden + mixed.flatten(1) @ layer.out.double().T
            act = gated_rows_reference(
                hidden, layer.gate_up.double(), gain_I=layer.ffn_gain.double(), eps=eps
            )
            hidden = hidden + act @ layer.down.double().T
        return linear_rows_reference(
            hidden, self.weights.table.double(), gain_I=self.weights.final_gain.double(), eps=eps
        )
