"""fused_step: one forward of a few rows through the Triton kernels, as the engine's graphs run
it.

T tokens   Q query heads   C key/value heads   E head width   S splits   P request rows
M table columns
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.attention.triton_paged import split_columns
from engine.kernels.embedding import BLOCK_H, embed_rows
from engine.kernels.gated_rows import gated_rows, gated_rows_reference
from engine.kernels.linear_rows import linear_rows, linear_rows_reference
from engine.kernels.mask_words import mask_words_reference
from engine.kernels.paged_attention import paged_attention, paged_attention_reference
from engine.kernels.qkv_rows import qkv_rows, qkv_rows_reference
from engine.kernels.row_tile import RowTile, ScaledRows
from engine.kernels.stream_tile import StreamTile
from engine.kernels.tiles import Product, choose_tile
from tests.bench.shapes import Shape, Weights, rotary_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """The tile of each of a layer's matrices and of the head."""

    qkv: RowTile | StreamTile
    out: RowTile | StreamTile
    gate_up: RowTile | StreamTile
    down: RowTile | StreamTile
    head: RowTile | StreamTile


def choose_tiles(
    shape: Shape, *, tokens: int, invariant: bool = False, streams: bool = True
) -> Tiles:
    """The tiles the engine picks for this shape."""
    hidden = shape.hidden
    sizes = {
        Product.QKV: (shape.qkv, hidden),
        Product.OUT: (hidden, shape.heads * shape.head_width),
        Product.GATE_UP: (2 * shape.ffn, hidden),
        Product.DOWN: (hidden, shape.ffn),
        Product.HEAD: (shape.vocab, hidden),
    }
    return Tiles(
        **{
            product.value: choose_tile(
                product, tokens=tokens, outputs=outputs, inputs=inputs,
                head_width=shape.head_width, invariant=invariant, streams=streams,
            )
            for product, (outputs, inputs) in sizes.items()
        }
    )  # fmt: skip


class FusedStep:
    """A model, its paged cache and its buffers; `run` is what a CUDA graph captures."""

    def __init__(self, shape: Shape, weights: Weights, *, tokens: int, context: int) -> None:
        device, dtype = weights.table.device, weights.table.dtype
        self.shape, self.weights, self.tokens = shape, weights, tokens
        room = context + tokens
        cache = (room + 1, shape.kv_heads, shape.head_width)
        self.keys = [torch.randn(cache, device=device, dtype=dtype) for _ in weights.layers]
        self.values = [torch.randn(cache, device=device, dtype=dtype) for _ in weights.layers]
        slots = torch.randperm(room, device=device) + 1
        self.table_PM = torch.zeros(2, context, device=device, dtype=torch.int64)
        self.table_PM[1] = slots[:context]
        self.tail_BW = slots[context:].view(1, tokens)
        self.slot_T = self.tail_BW.view(tokens)
        self.mask_BRW = torch.ones(1, tokens, tokens, dtype=torch.bool, device=device).tril()
        self.word_T = mask_words_reference(self.mask_BRW)
        self.row_B = torch.ones(1, device=device, dtype=torch.int64)
        self.prefix_B = torch.full((1,), context, device=device, dtype=torch.int64)
        self.position_T = context + torch.arange(tokens, device=device)
        self.id_T = torch.randint(0, shape.vocab, (tokens,), device=device)
        self.cos, self.sin = rotary_tables(room, shape.head_width, device=str(device))

        def buffer(*sizes: int, kind: torch.dtype = dtype) -> Tensor:
            # NaN shows what no kernel wrote.
            return torch.full(sizes, float("nan"), device=device, dtype=kind)

        self.split = split_columns(shape.kv_heads, tokens, width=shape.head_width, longest=room)
        splits = -(-room // self.split)
        self.hidden = buffer(tokens, shape.hidden)
        self.scaled = buffer(tokens, shape.hidden)
        self.square: dict[int, Tensor] = {}
        self.query = buffer(tokens, shape.heads, shape.head_width)
        self.mixed = buffer(tokens, shape.heads, shape.head_width)
        self.part = buffer(tokens, shape.heads, splits, shape.head_width, kind=torch.float32)
        self.weight = buffer(tokens, shape.heads, splits, kind=torch.float32)
        self.act = buffer(tokens, shape.ffn)
        self.logits = buffer(tokens, shape.vocab, kind=torch.float32)

    def rows(self, columns: int) -> ScaledRows:
        """The buffer of rows between two norms, for a producer of so many columns of squares."""
        if columns not in self.square:
            self.square[columns] = torch.full(
                (self.tokens, columns), float("nan"), device=self.hidden.device
            )
        return ScaledRows(x_TI=self.scaled, square_TG=self.square[columns])

    def run(self, tiles: Tiles, *, chained: bool = True) -> Tensor:
        """Logits of the buffered ids, f32 (T, vocab); their keys and values are in the cache."""
        shape, layers, eps = self.shape, self.weights.layers, self.shape.eps
        rows = self.rows(-(-shape.hidden // BLOCK_H))
        after_out = self.rows(-(-shape.hidden // tiles.out.outputs))
        after_down = self.rows(-(-shape.hidden // tiles.down.outputs))
        gains = [layer.attention_gain for layer in layers[1:]] + [self.weights.final_gain]
        embed_rows(
            self.id_T, self.weights.table, layers[0].attention_gain, out_TH=self.hidden,
            next_rows=rows,
        )  # fmt: skip
        for layer, key, value, gain in zip(layers, self.keys, self.values, gains, strict=True):
            qkv_rows(
                rows, layer.qkv, tile=tiles.qkv, cos_MF=self.cos, sin_MF=self.sin,
                position_T=self.position_T, slot_T=self.slot_T, out_TQE=self.query,
                key_ZCE=key, value_ZCE=value, eps=eps, chained=chained,
            )  # fmt: skip
            paged_attention(
                self.query, key, value, table_PM=self.table_PM, row_B=self.row_B,
                prefix_B=self.prefix_B, tail_BW=self.tail_BW, word_T=self.word_T, split=self.split,
                part_TQSE=self.part, weight_TQS=self.weight, out_TQE=self.mixed, chained=chained,
            )  # fmt: skip
            linear_rows(
                self.mixed.view(self.tokens, -1), layer.out, tile=tiles.out, out_TO=self.hidden,
                residual_TO=self.hidden, next_gain_O=layer.ffn_gain, next_rows=after_out,
                chained=chained,
            )  # fmt: skip
            gated_rows(
                after_out, layer.gate_up, tile=tiles.gate_up, out_TU=self.act, eps=eps,
                chained=chained,
            )  # fmt: skip
            linear_rows(
                self.act, layer.down, tile=tiles.down, out_TO=self.hidden,
                residual_TO=self.hidden, next_gain_O=gain, next_rows=after_down, chained=chained,
            )  # fmt: skip
            rows = after_down
        return linear_rows(
            rows, self.weights.head, tile=tiles.head, out_TO=self.logits, eps=eps,
            chained=chained,
        )  # fmt: skip

    def reference(self) -> Tensor:
        """The same forward in float64 from the same cache, f64 (T, vocab)."""
        shape, eps = self.shape, self.shape.eps
        hidden = self.weights.table[self.id_T].double()
        for layer, key, value in zip(self.weights.layers, self.keys, self.values, strict=True):
            query, new_key, new_value = qkv_rows_reference(
                hidden, layer.qkv.double(), gain_I=layer.attention_gain.double(), eps=eps,
                cos_MF=self.cos, sin_MF=self.sin, position_T=self.position_T,
                heads=shape.heads, kv_heads=shape.kv_heads,
            )  # fmt: skip
            key, value = key.double(), value.double()
            key[self.slot_T], value[self.slot_T] = new_key, new_value
            mixed = paged_attention_reference(
                query, key, value, table_PM=self.table_PM, row_B=self.row_B,
                prefix_B=self.prefix_B, tail_BW=self.tail_BW, mask_BRW=self.mask_BRW,
            )  # fmt: skip
            hidden = hidden + mixed.flatten(1) @ layer.out.double().T
            act = gated_rows_reference(
                hidden, layer.gate_up.double(), gain_I=layer.ffn_gain.double(), eps=eps
            )
            hidden = hidden + act @ layer.down.double().T
        return linear_rows_reference(
            hidden, self.weights.head.double(), gain_I=self.weights.final_gain.double(), eps=eps
        )
