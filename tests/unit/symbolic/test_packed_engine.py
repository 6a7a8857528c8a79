"""A correct engine in another hand: packed copies, sentinels, padded rows, slots computed, no tree.

It runs under trace and at full on the same lines, and neither has anything to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import pytest
import torch
from jaxtyping import Bool, Float32, Int32, Int64
from torch import Tensor

from shapecheck import Dims, carrier, contract, declare, enable, ids, indexes
from shapecheck.symbolic import trace
from shapecheck.testing import distinct_dims

declare("pool_rows", owner="batch", per_call=False, meaning="slots and, behind the last, the pad")

Rows = Annotated[Int64[Tensor, "padded_bs"], indexes("req_rows")]
Columns = Annotated[Int64[Tensor, "padded_bs"], indexes("max_context")]


@carrier
@dataclass
class Batch:
    """Padded rows are row 0 at column 0; what they write goes to the pad behind the last slot."""

    rows: Rows
    columns: Columns
    tokens: Annotated[Int64[Tensor, "padded_bs"], ids("target")]
    slots: Annotated[Int32[Tensor, "padded_bs"], indexes("pool_rows")]
    live: Bool[Tensor, "padded_bs"]


@carrier
@dataclass
class Drafted:
    """`parents` are nodes of one request; -1 where a node has none."""

    tokens: Annotated[Int64[Tensor, "padded_bs topk"], ids("draft", pad=-1)]
    parents: Annotated[Int64[Tensor, "padded_bs topk"], indexes("topk", pad=-1)]
    flat: Annotated[Int64[Tensor, "padded_bs*topk"], indexes("padded_bs*topk")]


class PackedEngine:
    def __init__(self, dims: Dims, make: Callable[..., Tensor]) -> None:
        self.dims = dims
        self.table = make("req_rows max_context", torch.int32)
        self.pool = make("pool_rows target_hidden", torch.float32)
        self.states = make("req_rows draft_hidden", torch.float32)
        self.scratch = make("padded_bs", torch.int64)

    def unpack(self, packed: Tensor) -> Batch:
        """One copy brought everything: rows, columns, tokens; -1 is a row that is not live."""
        rows, columns, tokens = packed.unbind(0)
        live = rows >= 0
        rows, columns = rows.clamp(min=0), columns.where(live, 0)
        slots = self.table[rows, columns]
        slots = torch.where(live, slots, self.dims["pool_rows"] - 1)
        return Batch(rows, columns, tokens.masked_fill(~live, 0), slots.to(torch.int32), live)

    @contract
    def write(self, batch: Batch, values: Float32[Tensor, "padded_bs target_hidden"]) -> None:
        self.pool[batch.slots.long()] = values
        self.pool.index_copy_(0, batch.slots.long(), values)

    @contract
    def draft(self, batch: Batch, logits: Float32[Tensor, "padded_bs draft_vocab"]) -> Drafted:
        topk = self.dims["topk"]
        size = logits.shape[0]
        tokens = logits.topk(topk, dim=-1).indices.where(batch.live[:, None], -1)
        nodes = torch.arange(topk).expand(size, topk)
        parents = torch.where(batch.live[:, None], nodes - 1, -1)
        first = torch.arange(size)[:, None] * topk
        flat = (first + parents.clamp(min=0)).flatten()
        return Drafted(tokens, parents, flat)

    @contract
    def follow(
        self, batch: Batch, drafted: Drafted
    ) -> Float32[Tensor, "padded_bs*topk draft_hidden"]:
        states = self.states[batch.rows].repeat_interleave(self.dims["topk"], dim=0)
        return states.index_select(0, drafted.flat)

    @contract
    def keep(
        self, batch: Batch, kept: Annotated[Int64[Tensor, "padded_bs"], indexes("padded_bs")]
    ) -> Batch:
        """Another order of the rows, through a scratch buffer that serves all fields in turn."""
        moved: list[Tensor] = []
        for field in (batch.rows, batch.columns, batch.tokens):
            self.scratch.copy_(field)
            moved.append(self.scratch[kept])
        rows, columns, tokens = moved
        return Batch(rows, columns, tokens, batch.slots[kept], batch.live[kept])

    @contract
    def advance(
        self, batch: Batch
    ) -> tuple[Columns, Annotated[Int64[Tensor, "padded_bs"], indexes("padded_bs")]]:
        columns = torch.where(batch.live, batch.columns + 1, 0) % self.dims["max_context"]
        order = batch.columns.argsort(stable=True)
        return columns, order

    def turn(self, packed: Tensor, make: Callable[..., Tensor]) -> Tensor:
        """The rows that are still live."""
        size = packed.shape[1]
        batch = self.unpack(packed)
        self.write(batch, make("padded_bs target_hidden", torch.float32))
        drafted = self.draft(batch, make("padded_bs draft_vocab", torch.float32))
        self.follow(batch, drafted)
        _, order = self.advance(batch)
        again = self.keep(batch, order)
        self.follow(self.keep(again, torch.arange(size)), drafted)
        first = again.live.nonzero().flatten()
        self.states[again.rows[first]] = 0.0
        return again.rows[first]


def _packed(rows: Sequence[int]) -> Tensor:
    return torch.tensor([rows, [0] * len(rows), [3] * len(rows)], dtype=torch.int64)


@pytest.mark.parametrize("rows", [[1, 2, -1], [-1], [], [4]])
def test_at_full_it_crosses(rows: list[int]) -> None:
    dims = distinct_dims().wider.with_sizes(pool_rows=(132, "num_slots + pad behind the last"))
    sizes = {name: dims[name] for name in dims.names() if dims.get(name) is not None}

    def make(shape: str, dtype: torch.dtype) -> Tensor:
        known = {**sizes, "padded_bs": len(rows)}
        return torch.zeros([known[name] for name in shape.split()], dtype=dtype)

    with enable(PackedEngine, level="full"):
        live = PackedEngine(dims, make).turn(_packed(rows), make)
    assert sorted(live.tolist()) == [row for row in rows if row >= 0]


@pytest.mark.parametrize("setting", ["equal", "draft wider", "target wider"])
@pytest.mark.parametrize("padded_bs", [None, 0, 1])
def test_under_trace_it_is_clean(setting: str, padded_bs: int | None) -> None:
    hints = {} if padded_bs is None else {"padded_bs": padded_bs}
    with trace(setting=setting, hints={**hints, "topk": 3}) as t:
        engine = PackedEngine(t.dims, t.tensor)
        for _ in range(2):
            packed = torch.stack([t.tensor("padded_bs", torch.int64) for _ in range(3)])
            engine.turn(packed, t.tensor)
    assert [one.message for one in t.report().findings] == []
