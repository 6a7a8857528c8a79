"""FusedLM: the CausalLM whose forwards run through the Triton kernels.

A forward of at most 16 rows is bound by reading weights, and there each layer is six kernels that
hand rows over without a norm of their own. Wider forwards have kernels of whole rows between their
products; these are kernels too for up to 128 rows, and torch's where torch is faster and in
prefill.

T rows of the forward   H hidden size   Q query heads   C key/value heads   E head width
U feed-forward width   X width of the hidden states fed to a draft   V vocabulary
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.attention.base import AttentionPlan
from engine.attention.triton_paged import BlockPlan, PagedPlan
from engine.errors import EngineError
from engine.kernels.activation import silu_mul
from engine.kernels.embedding import BLOCK_H, embed_rows
from engine.kernels.gated_rows import gated_rows
from engine.kernels.launch import multiplies_warpgroups, overlaps
from engine.kernels.linear_rows import linear_rows
from engine.kernels.norm import rms_norm
from engine.kernels.qkv_rows import qkv_rows
from engine.kernels.rope import rotate_store
from engine.kernels.row_tile import RowTile, ScaledRows
from engine.kernels.stream_tile import StreamTile
from engine.kernels.tiles import Product, choose_tile, choose_wide
from engine.kernels.wide_ring import RingTile
from engine.kernels.wide_rows import WideTile, wide_gated, wide_rows
from engine.models.base import Hidden, Role
from engine.models.config import ModelConfig
from engine.models.layers.attention import Attention
from engine.models.layers.decoder import DecoderLayer
from engine.models.layers.linear import Linear
from engine.models.layers.mlp import Mlp
from engine.models.llama import CausalLM

WIDEST = 32
"""Rows of the widest token tile; beyond it these kernels would read the weights twice."""

NARROW = 16
"""Rows up to which they beat the wide kernels, measured for the 8B and the 1B shape: with 16 rows a
forward took 4.26 and 0.90 ms this way, 4.70 and 1.06 ms the other; with 24 rows 5.05 and 1.08
against 4.54 and 0.96."""


class FusedLM(CausalLM):
    """The same model; `invariant` makes a row's result the same in every batch, prefill aside.

    EngineError where that cannot be kept: feed-forward biases are left to torch's products.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        role: Role = "target",
        length: int | None = None,
        aux_layers: tuple[int, ...] = (),
        invariant: bool = False,
    ) -> None:
        if invariant and config.mlp_bias:
            raise EngineError(
                f"{config.source}: batch_invariant has no kernels for feed-forward biases "
                "(mlp_bias); leave it off"
            )
        super().__init__(config, role=role, length=length, aux_layers=aux_layers)
        self.invariant = invariant

    def forward(self, ids_T: Tensor, positions_T: Tensor, plan: AttentionPlan) -> Hidden:
        if not isinstance(plan, PagedPlan) or self.config.mlp_bias:
            return super().forward(ids_T, positions_T, plan)
        if isinstance(plan, BlockPlan):
            if len(ids_T) <= self.narrow:
                return self._narrow(ids_T, positions_T, plan)
            if self.invariant:
                return self._in_parts(ids_T, positions_T, plan)
        return self._wide(ids_T, positions_T, plan)

    @property
    def narrow(self) -> int:
        """Rows of the widest narrow forward."""
        return WIDEST if self.invariant else NARROW

    def _in_parts(self, ids_T: Tensor, positions_T: Tensor, plan: BlockPlan) -> Hidden:
        """Some requests at a time, so that every row takes the kernels of a narrow forward."""
        done = [
            self._narrow(ids_T[taken], positions_T[taken], part)
            for taken, part in plan.parts(WIDEST)
        ]
        kept = [part.aux_TX for part in done if part.aux_TX is not None]
        return Hidden(
            rows_TH=torch.cat([part.rows_TH for part in done]),
            aux_TX=torch.cat(kept) if kept else None,
        )

    def _wide(self, ids_T: Tensor, positions_T: Tensor, plan: PagedPlan) -> Hidden:
        layers = [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
        gains = [*(_gain(layer) for layer in layers), self.norm.weight_H]
        kept: dict[int, Tensor] = {}
        eps, chained = self.config.norm_eps, overlaps()
        hidden_TH, read_TH = rms_norm(self.embedding(ids_T), gains[0], eps=eps)
        for number, (layer, next_gain_H) in enumerate(zip(layers, gains[1:], strict=True)):
            if number in self.aux_layers:
                kept[number] = hidden_TH
            attention = layer.attention
            query_TQE = self._rotated(
                attention, self._product(Product.QKV, attention.qkv, read_TH), positions_T, plan,
                chained=chained,
            )  # fmt: skip
            mixed_TQE = plan.read(attention.layer, query_TQE, chained=chained)
            hidden_TH, read_TH = rms_norm(
                self._product(Product.OUT, attention.out, mixed_TQE.flatten(1)),
                layer.post_norm.weight_H, eps=eps, residual_TH=hidden_TH, chained=chained,
            )  # fmt: skip
            hidden_TH, read_TH = rms_norm(
                self._product(Product.DOWN, layer.mlp.down, self._gated(layer.mlp, read_TH)),
                next_gain_H, eps=eps, residual_TH=hidden_TH, chained=chained,
            )  # fmt: skip
        return Hidden(rows_TH=read_TH, aux_TX=self._aux(kept))

    def _product(self, product: Product, linear: Linear, x_TI: Tensor) -> Tensor:
        """(T, O), or the parts of it that its reader adds up (S, T, O)."""
        tile = self._wide_tile(product, linear.weight_OI, len(x_TI))
        if tile is None:
            return linear(x_TI)
        size = (tile.parts, len(x_TI), len(linear.weight_OI))
        out_STO = torch.empty(size, device=x_TI.device)
        return wide_rows(
            x_TI, linear.weight_OI, tile=tile, out_STO=out_STO, bias_O=linear.bias_O,
            chained=overlaps(),
        )  # fmt: skip

    def _gated(self, mlp: Mlp, x_TH: Tensor) -> Tensor:
        """The activation between the feed-forward products, (T, U)."""
        tile = self._wide_tile(Product.GATE_UP, mlp.gate_up.weight_OI, len(x_TH))
        if tile is None:
            return silu_mul(mlp.gate_up(x_TH), chained=overlaps())
        assert isinstance(tile, WideTile), "a ring has no activation"
        act_TU = x_TH.new_empty(len(x_TH), self.config.ffn)
        return wide_gated(x_TH, mlp.gate_up.weight_OI, tile=tile, out_TU=act_TU, chained=overlaps())

    def _aux(self, kept: dict[int, Tensor]) -> Tensor | None:
        return torch.cat([kept[n] for n in self.aux_layers], dim=-1) if kept else None

    def _narrow(self, ids_T: Tensor, positions_T: Tensor, plan: BlockPlan) -> Hidden:
        tokens = len(ids_T)
        layers = [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
        hidden_TH = torch.empty(tokens, self.config.hidden, device=self.device, dtype=self.dtype)
        scaled_TH = torch.empty_like(hidden_TH)
        kept: dict[int, Tensor] = {}
        rows = _between(scaled_TH, BLOCK_H)
        first, *others = (_gain(layer) for layer in layers)
        # The last layer's rows enter the final norm, whose own kernel also divides by the rms.
        others.append(self.norm.weight_H)
        embed_rows(ids_T, self.embedding.weight_VH, first, out_TH=hidden_TH, next_rows=rows)
        for number, (layer, next_gain_H) in enumerate(zip(layers, others, strict=True)):
            if number in self.aux_layers:
                kept[number] = hidden_TH.clone()
            rows = self._layer(layer, hidden_TH, rows, next_gain_H, positions_T, plan)
        _, rows_TH = rms_norm(
            hidden_TH, self.norm.weight_H, eps=self.config.norm_eps, chained=overlaps()
        )
        return Hidden(rows_TH=rows_TH, aux_TX=self._aux(kept))

    def _layer(
        self,
        layer: DecoderLayer,
        hidden_TH: Tensor,
        rows: ScaledRows,
        next_gain_H: Tensor,
        positions_T: Tensor,
        plan: BlockPlan,
    ) -> ScaledRows:
        """hidden_TH is the layer's output, which the returned rows carry into the next norm."""
        eps, attention, mlp = self.config.norm_eps, layer.attention, layer.mlp
        tokens = len(hidden_TH)
        query_TQE = self._project(attention, rows, positions_T, plan)
        mixed_TQE = plan.read(attention.layer, query_TQE, chained=overlaps())
        tile = self._tile(Product.OUT, attention.out, tokens)
        rows = _between(rows.x_TI, tile.outputs)
        linear_rows(
            mixed_TQE.view(tokens, -1), attention.out.weight_OI, tile=tile, out_TO=hidden_TH,
            bias_O=attention.out.bias_O, residual_TO=hidden_TH,
            next_gain_O=layer.post_norm.weight_H, next_rows=rows, chained=overlaps(),
        )  # fmt: skip
        act_TU = hidden_TH.new_empty(tokens, self.config.ffn)
        gated_rows(
            rows, mlp.gate_up.weight_OI, tile=self._tile(Product.GATE_UP, mlp.gate_up, tokens),
            out_TU=act_TU, eps=eps, chained=overlaps(),
        )  # fmt: skip
        tile = self._tile(Product.DOWN, mlp.down, tokens)
        rows = _between(rows.x_TI, tile.outputs)
        linear_rows(
            act_TU, mlp.down.weight_OI, tile=tile, out_TO=hidden_TH, residual_TO=hidden_TH,
            next_gain_O=next_gain_H, next_rows=rows, chained=overlaps(),
        )  # fmt: skip
        return rows

    def _project(
        self, attention: Attention, rows: ScaledRows, positions_T: Tensor, plan: BlockPlan
    ) -> Tensor:
        """Rotated queries (T, Q, E); keys and values are in their slots of the pool."""
        tokens = len(positions_T)
        size = (tokens, attention.heads, attention.head_dim)
        qkv, eps = attention.qkv, self.config.norm_eps
        tile = self._tile(Product.QKV, qkv, tokens)
        if attention.q_norm is None or attention.k_norm is None:
            return qkv_rows(
                rows, qkv.weight_OI, tile=tile, **self._stores(attention, plan),
                position_T=positions_T, slot_T=plan.slots_T, out_TQE=rows.x_TI.new_empty(size),
                eps=eps, bias_O=qkv.bias_O, chained=overlaps(),
            )  # fmt: skip
        # A norm over each head needs the whole head, which no program of qkv_rows holds.
        outputs = qkv.weight_OI.shape[0]
        x_TO = linear_rows(
            rows, qkv.weight_OI, tile=tile, out_TO=rows.x_TI.new_empty(tokens, outputs), eps=eps,
            bias_O=qkv.bias_O, chained=overlaps(),
        )  # fmt: skip
        return self._rotated(attention, x_TO, positions_T, plan, chained=overlaps())

    def _rotated(
        self,
        attention: Attention,
        x: Tensor,
        positions_T: Tensor,
        plan: PagedPlan,
        *,
        chained: bool = False,
    ) -> Tensor:
        """Queries (T, Q, E) of projected rows (T, O) or their parts (S, T, O); keys and values are
        in their slots of the pool.
        """
        gains, eps = None, 0.0
        if attention.q_norm is not None and attention.k_norm is not None:
            gains = (attention.q_norm.weight_H, attention.k_norm.weight_H)
            eps = attention.q_norm.eps
        heads = attention.heads + 2 * attention.kv_heads
        return rotate_store(
            x.unflatten(-1, (heads, attention.head_dim)), **self._stores(attention, plan),
            position_T=positions_T, slot_T=plan.slots_T, eps=eps, gains=gains, chained=chained,
        )  # fmt: skip

    def _stores(self, attention: Attention, plan: PagedPlan) -> dict[str, Tensor]:
        """The rotary tables, and the pool of this layer."""
        return {
            "cos_MF": self.rotary.cos_MF,
            "sin_MF": self.rotary.sin_MF,
            "key_ZCE": plan.pool.keys_ZCE[attention.layer],
            "value_ZCE": plan.pool.values_ZCE[attention.layer],
        }

    def logits(self, rows_TH: Tensor) -> Tensor:
        """(T, H) after the final norm -> (T, V) fp32."""
        tokens, weight_VH = len(rows_TH), self.head.weight_VH
        if tokens > self.narrow and self.invariant:
            return torch.cat([self.logits(part) for part in rows_TH.split(WIDEST)])
        if not 0 < tokens <= self.narrow:
            return self._wide_logits(rows_TH)
        out_TV = torch.empty(tokens, len(weight_VH), device=rows_TH.device)
        tile = self._choose(Product.HEAD, weight_VH, tokens)
        return linear_rows(
            rows_TH.contiguous(), weight_VH, tile=tile, out_TO=out_TV, chained=overlaps()
        )

    def _wide_logits(self, rows_TH: Tensor) -> Tensor:
        weight_VH = self.head.weight_VH
        tile = self._wide_tile(Product.HEAD, weight_VH, len(rows_TH))
        if tile is not None:
            out_STV = torch.empty(1, len(rows_TH), len(weight_VH), device=rows_TH.device)
            return wide_rows(
                rows_TH.contiguous(), weight_VH, tile=tile, out_STO=out_STV, chained=overlaps()
            )[0]
        if weight_VH.is_cuda and weight_VH.itemsize == 2:
            return torch.mm(rows_TH, weight_VH.T, out_dtype=torch.float32)
        return super().logits(rows_TH)

    def _wide_tile(
        self, product: Product, weight_OI: Tensor, tokens: int
    ) -> WideTile | RingTile | None:
        if weight_OI.is_cuda and weight_OI.itemsize != 2:  # its tiles would not fit
            return None
        outputs, inputs = weight_OI.shape
        return choose_wide(
            product, tokens=tokens, outputs=outputs, inputs=inputs,
            rings=multiplies_warpgroups() and weight_OI.itemsize == 2,
        )  # fmt: skip

    def _tile(self, product: Product, linear: Linear, tokens: int) -> RowTile | StreamTile:
        return self._choose(product, linear.weight_OI, tokens)

    def _choose(self, product: Product, weight_OI: Tensor, tokens: int) -> RowTile | StreamTile:
        outputs, inputs = weight_OI.shape
        return choose_tile(
            product, tokens=tokens, outputs=outputs, inputs=inputs, invariant=self.invariant,
            head_width=self.config.head_dim, streams=overlaps() and weight_OI.itemsize == 2,
        )  # fmt: skip


def _gain(layer: DecoderLayer) -> Tensor:
    """The gain of a layer's first norm, which every layer of a CausalLM has."""
    assert layer.input_norm is not None, "only an EAGLE-1 draft has a layer without"
    return layer.input_norm.weight_H


def _between(x_TH: Tensor, width: int) -> ScaledRows:
    """Rows for the next norm, whose producer stores the squares of so many outputs in a column."""
    tokens, hidden = x_TH.shape
    square_TG = torch.empty(tokens, -(-hidden // width), device=x_TH.device)
    return ScaledRows(x_TI=x_TH, square_TG=square_TG)
