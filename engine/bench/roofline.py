"""Roofline: the fewest bytes and the operations of an iteration, by the sizes of its models.

A forward reads every matrix once, the head included and the embedding not, and the keys and values
of each request's context. Activations are left out: they are small, and may stay in caches.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.bench.card import Card
from engine.models.config import ModelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What forwards must do at the least; the sum of two is what both must."""

    bytes: float
    flops: float

    def __add__(self, other: Work) -> Work:
        return Work(bytes=self.bytes + other.bytes, flops=self.flops + other.flops)

    def limits_ms(self, card: Card) -> tuple[float, float]:
        """Milliseconds that the bytes take, and that the operations take."""
        return self.bytes / card.bandwidth * 1e3, self.flops / card.rate * 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One iteration: so many requests, each with `context` committed tokens and N verify rows."""

    requests: int
    num_draft_tokens: int
    context: float
    itemsize: int

    @property
    def num_steps(self) -> int:
        """The depth of the chain."""
        return self.num_draft_tokens - 1


def forward_work(model: ModelConfig, shape: Shape, *, rows: int, logits: int) -> Work:
    """A forward of so many rows in all, `logits` of which go through the head."""
    seen = shape.requests * shape.context
    matrices, head = _layer_weights(model) * model.layers, model.vocab * model.hidden
    cache = 2 * model.kv_heads * model.head_dim * model.layers
    # Each row's queries meet the keys, and its weights the values.
    attention = 4 * rows * shape.context * model.heads * model.head_dim * model.layers
    return Work(
        bytes=shape.itemsize * (matrices + head + seen * cache),
        flops=2 * rows * matrices + 2 * logits * head + attention,
    )


def iteration_forwards(
    target: ModelConfig, draft: ModelConfig | None, shape: Shape
) -> tuple[Work, ...]:
    """Verify of N rows a request; with a draft its extend of N rows and S-1 steps of one row."""
    rows = shape.requests * shape.num_draft_tokens
    verify = forward_work(target, shape, rows=rows, logits=rows)
    if draft is None:
        return (verify,)
    extend = forward_work(draft, shape, rows=rows, logits=shape.requests)
    step = forward_work(draft, shape, rows=shape.requests, logits=shape.requests)
    return (verify, extend, *[step] * (shape.num_steps - 1))


def ridge_rows(model: ModelConfig, shape: Shape, card: Card) -> float:
    """The rows at which a forward of this model computes as long as it reads."""
    one = forward_work(model, shape, rows=1, logits=1)
    return one.bytes * card.ridge / one.flops


def _layer_weights(model: ModelConfig) -> int:
    heads = model.heads + 2 * model.kv_heads
    attention = model.hidden * model.head_dim * (heads + model.heads)
    return attention + 3 * model.hidden * model.ffn
