"""shapes: the two Llama shapes the figures are about, with random weights made on the device."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.llama import CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of one decoder-only model."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    ffn: int
    vocab: int
    eps: float = 1e-5

    @property
    def qkv(self) -> int:
        """Output rows of the fused query, key and value projection."""
        return (self.heads + 2 * self.kv_heads) * self.head_width

    def step_bytes(self, context: int) -> int:
        """Bytes one bf16 decode step must read: every matrix once and the cached keys and
        values.
        """
        attention = self.hidden * (self.qkv + self.heads * self.head_width)
        layer = attention + 3 * self.hidden * self.ffn
        cache = 2 * context * self.kv_heads * self.head_width
        return 2 * (self.layers * (layer + cache) + self.vocab * self.hidden)


LLAMA_8B = Shape(
    name="llama-8b", layers=32, hidden=4096, heads=32, kv_heads=8, head_width=128, ffn=14336,
    vocab=128256,
)  # fmt: skip
LLAMA_1B = Shape(
    name="llama-1b", layers=16, hidden=2048, heads=32, kv_heads=8, head_width=64, ffn=8192,
    vocab=128256,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """The matrices and gains of one decoder layer."""

    qkv: Tensor
    out: Tensor
    gate_up: Tensor
    down: Tensor
    attention_gain: Tensor
    ffn_gain: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """All weights of one model; a tied head is the embedding table."""

    table: Tensor
    head: Tensor
    layers: tuple[LayerWeights, ...]
    final_gain: Tensor


def random_weights(
    shape: Shape, device: str = "cuda", dtype: torch.dtype = torch.bfloat16
) -> Weights:
    """Draws weights whose products keep the scale of their inputs."""

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, device=device, dtype=dtype) * columns**-0.5

    def gain() -> Tensor:
        return 1.0 + 0.1 * torch.randn(shape.hidden, device=device, dtype=dtype)

    layers = tuple(
        LayerWeights(
            qkv=matrix(shape.qkv, shape.hidden),
            out=matrix(shape.hidden, shape.heads * shape.head_width),
            gate_up=matrix(2 * shape.ffn, shape.hidden),
            down=matrix(shape.hidden, shape.ffn),
            attention_gain=gain(),
            ffn_gain=gain(),
        )
        for _ in range(shape.layers)
    )
    table = torch.randn(shape.vocab, shape.hidden, device=device, dtype=dtype)
    return Weights(table=table, head=table, layers=layers, final_gain=gain())


def shape_of(model: CausalLM, name: str) -> Shape:
    """The sizes of an engine's model."""
    config = model.config
    return Shape(
        name=name,
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_width=config.head_dim,
        ffn=config.ffn,
        vocab=config.vocab,
        eps=config.norm_eps,
    )


def weights_of(model: CausalLM) -> Weights:
    """The very weights of an engine's model, nothing copied."""
    layers = tuple(
        LayerWeights(
            qkv=layer.attention.qkv.weight_OI.data,
            out=layer.attention.out.weight_OI.data,
            gate_up=layer.mlp.gate_up.weight_OI.data,
            down=layer.mlp.down.weight_OI.data,
            attention_gain=layer.input_norm.weight_H.data,
            ffn_gain=layer.post_norm.weight_H.data,
        )
        for layer in model.layers
    )
    return Weights(
        table=model.embedding.weight_VH.data,
        head=model.head.weight_VH.data,
        layers=layers,
        final_gain=model.norm.weight_H.data,
    )


def rotary_tables(positions: int, width: int, device: str = "cuda") -> tuple[Tensor, Tensor]:
    """Returns cosines and sines, f32 (positions, width / 2), at base 500000."""
    power = torch.arange(0, width, 2, device=device, dtype=torch.float32) / width
    angle = torch.outer(torch.arange(positions, device=device).float(), 500000.0**-power)
    return angle.cos(), angle.sin()
