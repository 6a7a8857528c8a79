"""A worker whose contracts mark what values count, and what a trace finds in its use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from shapecheck import Dims, carrier, contract, ids, indexes
from shapecheck.symbolic import Trace, trace

Rows = Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
Lens = Annotated[Int64[Tensor, "bs"], indexes("max_context")]
Slots = Annotated[Int64[Tensor, "bs topk"], indexes("num_slots")]


@carrier
@dataclass
class Batch:
    rows: Rows
    lens: Lens
    tokens: Annotated[Int64[Tensor, "bs"], ids("target")]
    last: Annotated[Int64[Tensor, "bs"], indexes("tokens")]
    states: Float[Tensor, "tokens target_hidden"]


class Worker:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract
    def step(self, batch: Batch) -> None: ...

    @contract
    def read(self, rows: Rows, slots: Slots | None) -> None: ...

    @contract
    def write(self, slots: Slots, lens: Lens) -> None: ...

    @contract
    def parents(
        self, rows: Annotated[Int64[Tensor, "bs*topk"], indexes("bs*topk")], bs: Int64[Tensor, "bs"]
    ) -> None: ...

    @contract
    def sampled(self, tokens: Annotated[Int64[Tensor, "bs"], ids("target")], bs: Lens) -> None: ...


Run = Callable[[Trace, Worker, Batch], object]


def findings(run: Run, **hints: int) -> list[str]:
    with trace(hints=hints) as t:
        worker, batch = Worker(t.dims), batch_of(t)
        worker.step(batch)
        run(t, worker, batch)
    return [f"{one.code} {one.message}" for one in t.report().findings]


def batch_of(t: Trace) -> Batch:
    whole = [t.tensor("bs", torch.int64) for _ in range(4)]
    return Batch(*whole, t.tensor("tokens target_hidden", "target"))
