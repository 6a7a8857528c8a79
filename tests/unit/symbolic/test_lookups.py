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


def _written(flags: Tensor, y: Tensor) -> Tensor:
    flags[:, :, 0] = y
    return flags


def _zeroed(y: Tensor) -> Tensor:
    return y.zero_()


def _filled(y: Tensor, places: Tensor) -> Tensor:
    y[places] = 1
    return y


def _like(y: Tensor) -> Tensor:
    """A condition for each value and each other of its row."""
    return y[:, :, None] == y[:, None]


# Conditions as whole numbers: how many hold is limited by the axis that is counted along.
FLAGS: dict[str, Callable[[Tensor], Tensor]] = {
    "a mask": _like,
    "whole numbers": lambda y: _like(y).long(),
    "narrow numbers": lambda y: _like(y).int(),
    "a choice of constants": lambda y: torch.where(_like(y), 1, 0),
    "places that were filled": lambda y: _filled(
        torch.zeros(_like(y).shape, dtype=torch.int64), _like(y)
    ),
    "ones that were taken out": lambda y: torch.ones_like(_like(y), dtype=torch.int64).masked_fill(
        _like(y), 0
    ),
    "a prefix": lambda y: _like(y).long().cumprod(2),
    "two at once": lambda y: _like(y).long() * (_like(y) == 0).long(),
    "two at once, in place": lambda y: _like(y).long().mul_((_like(y) == 0).long()),
    "a join": lambda y: torch.cat([_like(y).long(), _like(y).int()], 2),
    "rows that were looked up": lambda y: _like(y).long()[torch.argsort(y[:, 0])],
}
# Values that the code has limited before a contract says what they count.
LIMITED: dict[str, Callable[[Tensor], Tensor]] = {
    "an upper limit": lambda y: y.clamp(max=0),
    "an upper limit in place": lambda y: y.clamp_(max=0),
    "the lesser": lambda y: torch.minimum(y, torch.zeros_like(y)),
    "a remainder": lambda y: y % 1,
    "a remainder of C": lambda y: y.fmod(1),
    "a remainder in place": lambda y: y.remainder_(1),
    "a quotient": lambda y: y // 1000,
    "some bits": lambda y: y & 0,
    "a choice": lambda y: torch.where(y > 0, 0, y),
    "a mask": lambda y: y.masked_fill(y > 0, 0),
    "a mask in place": lambda y: y.masked_fill_(y > 0, 0),
    "zeros": _zeroed,
    "a condition": lambda y: (y < 0).long(),
    "which is the largest": lambda y: y[:, :, None].argmax(-1),
    **{f"a count of {name}": lambda y, make=make: make(y).sum(2) for name, make in FLAGS.items()},
    "a count less one": lambda y: (y[:, :, None] == y[:, None]).long().sum(2) - 1,
    "a count of counts": lambda y: _like(y).long().sum(2).cumsum(0),
    "a running count": lambda y: (y == y).long().cumsum(1) - 1,
    "numbers drawn": lambda y: torch.randint_like(y, 1),
    "a move of what was limited": lambda y: (y % 1).clone().flip(0)[:] + 0,
    "a copy of what was limited": lambda y: torch.empty_like(y).copy_(y % 1),
    "a join of what was limited": lambda y: torch.cat([y % 1, y % 1])[: y.shape[0]],
}
# Values that may be any that the contract says there are.
ANY: dict[str, Callable[[Tensor], Tensor]] = {
    "a copy": lambda y: y.clone(),
    "a copy into a buffer": lambda y: torch.zeros_like(y).copy_(y),
    "another order": lambda y: y.flip(0),
    "a sum": lambda y: torch.where(y[:, :, None] == y[:, None], y[:, None], 0).sum(2),
    "a sum of products": lambda y: (_like(y).long() * y[:, None]).sum(2),
    "a sum of what was written over": lambda y: (
        _like(y).long().copy_(y[:, None].expand(_like(y).shape)).sum(2)
    ),
    "a sum of what was written over in part": lambda y: _written(_like(y).long(), y).sum(2),
    "one more": lambda y: y + 1,
}


def _again(change: Callable[[Tensor], Tensor], *, said: bool) -> list[str]:
    with trace() as t:
        worker, lens = Worker(t.dims), t.tensor("bs", torch.int64)
        slots = t.tensor("bs topk", torch.int64)
        if said:
            worker.step(slots, lens)
        changed = change(slots)
        worker.step(changed, lens)
        t.tensor("bs 1").gather(1, changed)
    return [f"{one.code} {one.message}" for one in t.report().findings]


@pytest.mark.parametrize("said", [False, True])
@pytest.mark.parametrize("name", LIMITED)
def test_values_limited_before_a_contract_need_not_have_the_last_place(
    name: str, *, said: bool
) -> None:
    assert [one for one in _again(LIMITED[name], said=said) if "SHP307" in one] == []


@pytest.mark.parametrize("said", [False, True])
@pytest.mark.parametrize("name", ANY)
def test_a_contract_says_again_what_other_values_count(name: str, *, said: bool) -> None:
    found = _again(ANY[name], said=said)
    assert len(found) == 1, found
    assert "SHP307 positions along num_steps*topk+1 (argument slots of Worker.step)" in found[0]


def test_positions_along_a_known_axis_are_held_to_that_axis_alone() -> None:
    with trace() as t:
        worker, lens = Worker(t.dims), t.tensor("bs", torch.int64)
        order = t.tensor("bs topk").argsort(-1)
        worker.step(order.clone(), lens)
        t.tensor("bs topk").gather(1, order)
    assert t.report().findings == ()


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


Lens = Annotated[Int64[Tensor, "bs"], indexes("max_context")]


class Table:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract
    def read(
        self, lens: Lens, rows: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    ) -> None: ...


TABLES: dict[str, tuple[str, list[str]]] = {
    "its own table": ("max_context", []),
    "rows of another table": ("req_rows", ["SHP307"]),
    "slots of a pool": ("num_slots", ["SHP307"]),
    "a table of the model": ("target_vocab", []),
}


@pytest.mark.parametrize("name", TABLES)
def test_positions_of_one_table_are_none_of_another(name: str) -> None:
    axis, codes = TABLES[name]
    with trace() as t:
        lens, rows = (t.tensor("bs", torch.int64) for _ in range(2))
        Table(t.dims).read(lens, rows)
        t.tensor(f"{axis} topk")[lens]
    assert [one.code for one in t.report().findings] == codes


class Tree:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract
    def read(
        self,
        child: Annotated[Int64[Tensor, "bs topk"], indexes("topk", pad=-1)],
        lens: Int64[Tensor, "bs"],
    ) -> None: ...


def _put(t: Trace, axis: str, child: Tensor, where: Tensor) -> None:
    t.tensor(axis)[where] = 1


def _kept(t: Trace, child: Tensor) -> None:
    table = t.tensor("topk")
    table[child] = torch.where(child >= 0, t.tensor("bs topk"), table[child])


PADS: dict[str, tuple[Run, list[str]]] = {
    "as it is": (lambda t, child: t.tensor("bs topk").gather(1, child), ["SHP307"]),
    "clamped": (lambda t, child: t.tensor("bs topk").gather(1, child.clamp(min=0)), []),
    "replaced": (lambda t, child: t.tensor("bs topk").gather(1, child.where(child >= 0, 0)), []),
    "as the last of all": (lambda t, child: t.tensor("topk target_hidden")[child], []),
    "over the last of all": (lambda t, child: _put(t, "topk", child, child), ["SHP307"]),
    "over the last of all, in a copy": (
        lambda t, child: t.tensor("topk").index_put((child,), torch.zeros(())),
        ["SHP307"],
    ),
    "added to the last of all": (
        lambda t, child: t.tensor("topk").index_put_(
            (child,), t.tensor("bs topk"), accumulate=True
        ),
        ["SHP307"],
    ),
    "over a place of its own": (lambda t, child: _put(t, "topk+1", child, child), []),
    "over the last, without a pad": (
        lambda t, child: _put(t, "topk", child, child.clamp(min=0)),
        [],
    ),
    "over the last, of values that are masked": (
        lambda t, child: t.tensor("topk").index_put_(
            (child,), t.tensor("bs topk") * (child >= 0), accumulate=True
        ),
        [],
    ),
    "over the last, as it was": (_kept, []),
    "nothing over the last": (lambda t, child: _put(t, "topk", child, child[child >= 0]), []),
    "only those that are none": (lambda t, child: t.tensor("topk")[child[child >= 0]], []),
}


@pytest.mark.parametrize("name", PADS)
def test_a_pad_looks_nothing_up(name: str) -> None:
    run, codes = PADS[name]
    with trace() as t:
        child = t.tensor("bs topk", torch.int64)
        Tree(t.dims).read(child, t.tensor("bs", torch.int64))
        run(t, child)
    assert [one.code for one in t.report().findings] == codes
