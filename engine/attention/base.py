"""The interface of an attention backend: plan once per forward, attend once per layer.

B requests   T rows of a ragged forward   R query rows per request of a uniform one
W slots read beyond the prefix, per request   Q query heads   C key/value heads   E head width

There are two shapes of work. `Ragged` is prefill: some new tokens of every request, causal.
`Block` is everything else (decode, draft decode, verify, draft extend): R rows for each of B
requests, each row seeing the request's committed prefix and, of W further slots, those its mask
allows. The second is what a CUDA graph replays, so its tensors may be static buffers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from shapecheck import carrier, indexes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ragged:
    """New tokens of every request, in order: columns [prefix, prefix + extend) of its table row.

    The lengths are the scheduler's own numbers, so planning reads nothing back from the device.
    """

    req_rows: tuple[int, ...]
    prefix_lens: tuple[int, ...]
    extend_lens: tuple[int, ...]

    def columns(self) -> list[int]:
        """The column of every row, one request after the other."""
        spans = zip(self.prefix_lens, self.extend_lens, strict=True)
        return [prefix + new for prefix, extend in spans for new in range(extend)]


@carrier
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """R rows of each request.

    Row r of request b writes its K/V to slots[b, r] and reads table columns [0, prefix_lens[b])
    and those tail_slots[b, w] for which mask[b, r, w]. `max_prefix` bounds prefix_lens and is
    known without asking the device.
    """

    req_rows_B: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    prefix_lens_B: Annotated[Int64[Tensor, "bs"], indexes("max_context")]
    slots_BR: Annotated[Int64[Tensor, "bs block_rows"], indexes("num_slots")]
    tail_slots_BW: Annotated[Int64[Tensor, "bs window"], indexes("num_slots")]
    mask_BRW: Bool[Tensor, "bs block_rows window"]
    max_prefix: int


class AttentionPlan(ABC):
    """Where the rows of one forward write and what they read, fixed for all layers."""

    @abstractmethod
    def attend(self, layer: int, q_TQE: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> Tensor:
        """K and V are in the pool and the result (T, Q, E) is attention over what each row sees."""


class EmptyPlan(AttentionPlan):
    """A rank without requests enters the forward with no rows."""

    def attend(self, layer: int, q_TQE: Tensor, k_TCE: Tensor, v_TCE: Tensor) -> Tensor:
        return torch.empty_like(q_TQE)


class AttentionBackend(ABC):
    """Plans forwards over one model's pool; the table is shared by target and draft."""

    def __init__(self, pool: KVPool, table: RequestTable) -> None:
        self.pool = pool
        self.table = table

    @abstractmethod
    def plan_ragged(self, work: Ragged) -> AttentionPlan:
        """A plan for a prefill-shaped forward."""

    @abstractmethod
    def plan_block(self, work: Block) -> AttentionPlan:
        """A plan for a uniform forward; never synchronises with the device."""
