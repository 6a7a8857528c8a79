"""Look-ups under trace: an axis has a place for every position that a contract says there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from shapecheck import Dims, contract, indexes
from shapecheck.symbolic import Trace, trace

Slots = Annotated[Int64[Tensor, "bs topk"], indexes("num_steps*topk+1")]
Run = Callable[[Trace, Tensor], object]


class Worker:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract
    def step(self, slots: Slots, lens: Int64[Tensor, "bs"]) -> None: ...


def _findings(run: Run, **hints: int) -> list[str]:
    with trace(hints=hints) as t:
        slots = t.tensor("bs topk", torch.int64)
        Worker(t.dims).step(slots, t.tensor("bs", torch.int64))
        run(t, slots)
    return [f"{one.code} {one.message}" for one in t.report().findings]


def _bounded(t: Trace, slots: Tensor) -> Tensor:
    slots.clamp_(max=0)
    return t.tensor("bs 1").gather(1, slots)


SHORT: dict[str, Run] = {
    "one place": lambda t, slots: t.tensor("bs 1").gather(1, slots),
    "a place less": lambda t, slots: t.tensor("num_steps*topk target_hidden")[slots],
    "one part of a join": lambda t, slots: t.tensor("bs topk").gather(1, slots),
    "a view with further axes": lambda t, slots: t.tensor("bs 1 target_vocab").gather(
        1, slots.unsqueeze(2).expand(-1, -1, t.size("target_vocab"))
    ),
    "rows of an embedding": lambda t, slots: torch.nn.functional.embedding(
        slots, t.tensor("num_steps target_hidden")
    ),
}

ROOMY: dict[str, Run] = {
    "its own axis": lambda t, slots: t.tensor("bs num_steps*topk+1").gather(1, slots),
    "a longer axis": lambda t, slots: t.tensor("bs num_steps*topk+2").gather(1, slots),
    "an axis that is not related": lambda t, slots: t.tensor("bs num_aux").gather(1, slots),
    "a number of places": lambda t, slots: torch.zeros(2)[slots],
    "rows of the batch": lambda t, slots: t.tensor("bs target_hidden")[slots],
    "some of the values": lambda t, slots: t.tensor("bs 1").gather(1, slots[:, :1]),
    "values that were bounded": lambda t, slots: t.tensor("bs 1").gather(1, slots.clamp(max=0)),
    "values that were bounded in place": _bounded,
    "values that a condition takes": lambda t, slots: t.tensor("bs 1").gather(
        1, torch.where(slots < 1, slots, 0)
    ),
    "no values": lambda t, slots: t.tensor("bs 1").gather(1, slots[:0]),
}


@pytest.mark.parametrize("name", SHORT)
def test_an_axis_with_fewer_places_is_found(name: str) -> None:
    found = _findings(SHORT[name])
    assert len(found) == 1, found
    assert "SHP307 positions along num_steps*topk+1 (argument slots of Worker.step)" in found[0]
    assert "look up an axis of " in found[0]


@pytest.mark.parametrize("name", ROOMY)
def test_an_axis_that_may_have_them_is_clean(name: str) -> None:
    assert _findings(ROOMY[name]) == []


def test_no_requests_look_nothing_up() -> None:
    assert _findings(SHORT["one place"], bs=0) == []
