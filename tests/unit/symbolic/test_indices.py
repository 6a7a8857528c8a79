"""Indices under trace: a value counts along the axis that a contract named first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import pytest
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


def _findings(run: Run, **hints: int) -> list[str]:
    with trace(hints=hints) as t:
        worker, batch = Worker(t.dims), _batch(t)
        worker.step(batch)
        run(t, worker, batch)
    return [f"{one.code} {one.message}" for one in t.report().findings]


def _batch(t: Trace) -> Batch:
    whole = [t.tensor("bs", torch.int64) for _ in range(4)]
    return Batch(*whole, t.tensor("tokens target_hidden", "target"))


def _swapped(worker: Worker, batch: Batch) -> None:
    batch.rows, batch.lens = batch.lens, batch.rows
    worker.step(batch)


MIXED: dict[str, tuple[Run, int]] = {
    "lengths for rows": (lambda t, w, b: w.read(b.lens, None), 1),
    "tokens for rows": (lambda t, w, b: w.read(b.tokens, None), 1),
    "rows for tokens": (lambda t, w, b: w.sampled(b.rows, b.lens), 1),
    "rows for slots": (
        lambda t, w, b: w.write(b.rows[:, None].expand(-1, t.size("topk")), b.lens),
        1,
    ),
    "rows of a batch for those of a table": (lambda t, w, b: w.read(b.last, None), 1),
    "two that changed places": (lambda t, w, b: _swapped(w, b), 1),
    "behind a copy and a view": (lambda t, w, b: w.read(b.lens.clone().view(-1), None), 1),
    "behind a gather": (
        lambda t, w, b: w.read(b.lens[torch.zeros(t.size("bs"), dtype=torch.int64)], None),
        1,
    ),
    "behind a join": (
        lambda t, w, b: w.read(torch.cat([b.lens, b.lens])[: t.size("bs")], None),
        1,
    ),
    "behind a choice of pads": (
        lambda t, w, b: w.read(b.lens.where(b.rows > 0, 0).clamp(min=0), None),
        1,
    ),
    "written into a buffer": (
        lambda t, w, b: w.read(torch.zeros_like(b.rows).copy_(b.lens), None),
        1,
    ),
    "the best token for a row": (
        lambda t, w, b: w.read(t.tensor("bs target_vocab").argmax(-1), None),
        1,
    ),
}


Change = Callable[[torch.Tensor, Batch], object]


def _zeros(batch: Batch) -> torch.Tensor:
    return torch.zeros_like(batch.rows)


# What is done in place to lengths, which are lengths afterwards.
KEPT: dict[str, Change] = {
    "one element is a constant": lambda y, b: y.__setitem__(0, 3),
    "constants behind a mask": lambda y, b: y.__setitem__(b.rows > 0, 0),
    "constants at an index": lambda y, b: y.__setitem__(_zeros(b), 0),
    "zeros behind a mask": lambda y, b: y.__setitem__(b.rows > 0, _zeros(b)[0]),
    "one of its own elements": lambda y, b: y.__setitem__(0, y[-1]),
    "others at an index": lambda y, b: y.index_put_((_zeros(b),), b.lens),
    "others scattered": lambda y, b: y.scatter_(0, _zeros(b), b.lens),
    "a constant scattered": lambda y, b: y.scatter_(0, _zeros(b), 0),
    "others copied to an index": lambda y, b: y.index_copy_(0, _zeros(b), b.lens),
    "others put": lambda y, b: y.put_(_zeros(b), b.lens),
    "others behind a mask": lambda y, b: y.masked_scatter_(b.rows > 0, b.lens),
    "filled behind a mask": lambda y, b: y.masked_fill_(b.rows > 0, 0),
    "filled at an index": lambda y, b: y.index_fill_(0, _zeros(b), 0),
    "limited": lambda y, b: y.clamp_(min=0),
}
# What is made of lengths, and has lengths alone.
MADE: dict[str, Callable[[torch.Tensor, Batch], torch.Tensor]] = {
    "sorted": lambda y, b: y.sort().values,
    "sorted into": lambda y, b: torch.sort(y, out=(y.new_empty(y.shape), y.new_empty(y.shape)))[0],
    "sorted stably": lambda y, b: y.sort(stable=True).values,
    "the largest so far": lambda y, b: y.cummax(0).values,
    "the least so far": lambda y, b: y.cummin(0).values,
    "the largest few": lambda y, b: y.topk(y.shape[0]).values,
    "the largest of an axis": lambda y, b: y[:, None].max(1).values,
    "the least of an axis": lambda y, b: y[:, None].min(1).values,
    "the extremes": lambda y, b: y[:, None].aminmax(dim=1).max,
    "the median": lambda y, b: y[:, None].median(1).values,
    "the mode": lambda y, b: y[:, None].mode(1).values,
    "the k-th": lambda y, b: y[:, None].kthvalue(1).values,
    "the larger of two": lambda y, b: torch.maximum(y, y.flip(0)),
    "the lesser of two": lambda y, b: torch.minimum(y, y.flip(0)),
    "a triangle": lambda y, b: y[:, None].tril()[:, 0],
    "other places": lambda y, b: y.take(_zeros(b)),
    "selected into": lambda y, b: torch.index_select(y, 0, _zeros(b), out=torch.empty_like(y)),
    "others at an index": lambda y, b: y.index_put((_zeros(b),), b.lens),
    "others scattered": lambda y, b: y.scatter(0, _zeros(b), b.lens),
    "a constant scattered": lambda y, b: y.scatter(0, _zeros(b), 0),
    "filled at an index": lambda y, b: y.index_fill(0, _zeros(b), 0),
    "others copied to an index": lambda y, b: y.index_copy(0, _zeros(b), b.lens),
    "others behind a mask": lambda y, b: y.masked_scatter(b.rows > 0, b.lens),
    "others in a slice": lambda y, b: y.slice_scatter(b.lens[:1], 0, 0, 1),
    "others in a place": lambda y, b: y.select_scatter(b.lens[0], 0, 0),
    "converted and back": lambda y, b: y.to(torch.int32).long(),
}


def _changed(y: torch.Tensor, change: Change, batch: Batch) -> torch.Tensor:
    change(y, batch)
    return y


@pytest.mark.parametrize("bs", [5, 1])
@pytest.mark.parametrize("name", [*KEPT, *(f"made: {name}" for name in MADE)])
def test_the_mark_is_kept_where_values_are_moved_or_replaced(name: str, bs: int) -> None:
    make, change = MADE.get(name.removeprefix("made: ")), KEPT.get(name)

    def read(t: Trace, w: Worker, b: Batch) -> None:
        y = make(b.lens, b) if make and not change else _changed(b.lens.clone(), change, b)
        w.read(y, None)

    (said,) = _findings(read, bs=bs)
    assert said.startswith("SHP307")
    assert "positions along max_context" in said


# What may be something else afterwards.
LOST: dict[str, Change] = {
    "other values at an index": lambda y, b: y.__setitem__(_zeros(b), b.rows),
    "counts at an index": lambda y, b: y.index_put_((_zeros(b),), b.lens, accumulate=True),
    "ones added": lambda y, b: y.index_put_((_zeros(b),), _zeros(b)[:1] + 1, accumulate=True),
    "counts put": lambda y, b: y.put_(_zeros(b), b.lens, accumulate=True),
    "sums scattered": lambda y, b: y.scatter_(0, _zeros(b), b.lens, reduce="add"),
    "sums": lambda y, b: y.add_(1),
    "limits of another kind": lambda y, b: y.clamp_(max=b.rows),
    "zeros copied": lambda y, b: y.copy_(_zeros(b)),
    "zeros all over": lambda y, b: y.__setitem__(slice(None), 0),
    "others copied": lambda y, b: y.__setitem__(slice(None), b.rows),
    "a result": lambda y, b: torch.add(b.rows, 1, out=y),
    "zeros as a result": lambda y, b: torch.zeros(y.shape, dtype=y.dtype, out=y),
}
OTHERS: dict[str, Callable[[torch.Tensor, Batch], torch.Tensor]] = {
    "where the sorted ones were": lambda y, b: y.sort().indices,
    "where the largest was": lambda y, b: y.cummax(0).indices,
    "where the largest few were": lambda y, b: y.topk(y.shape[0]).indices,
    "which is the largest": lambda y, b: y[:, None].max(1).indices,
    "sums": lambda y, b: y.cumsum(0),
    "sums scattered": lambda y, b: y.scatter_add(0, _zeros(b), y),
    "other values scattered": lambda y, b: y.scatter(0, _zeros(b), b.rows),
    "other values behind a mask": lambda y, b: y.masked_scatter(b.rows > 0, b.rows),
    "limits of another kind": lambda y, b: y.clamp(max=b.rows),
}


@pytest.mark.filterwarnings("ignore:The reduce argument")
@pytest.mark.parametrize("bs", [5, 1, 0])
@pytest.mark.parametrize("name", [*LOST, *(f"made: {name}" for name in OTHERS)])
def test_the_mark_is_dropped_where_values_may_be_others(name: str, bs: int) -> None:
    make, change = OTHERS.get(name.removeprefix("made: ")), LOST.get(name)

    def read(t: Trace, w: Worker, b: Batch) -> None:
        y = make(b.lens, b) if make and not change else _changed(b.lens.clone(), change, b)
        w.read(y, None)

    assert _findings(read, bs=bs) == []


def _put_behind(y: torch.Tensor, mask: torch.Tensor, value: int) -> torch.Tensor:
    y[mask] = value
    return y


# Lengths that were made to fit an axis of `n` places.
FITTED: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "limits": lambda y, n: y.clamp(0, n - 1),
    "limits by name": lambda y, n: y.clamp(max=n - 1),
    "limits by a tensor": lambda y, n: y.clamp(max=torch.tensor(3)),
    "limits in place": lambda y, n: y.clone().clamp_(max=n - 1),
    "the lesser": lambda y, n: torch.minimum(y, torch.tensor(3)),
    "the lesser of a constant": lambda y, n: torch.minimum(torch.full_like(y, 3), y),
    "a choice": lambda y, n: torch.where(y < n, y, n - 1),
    "a choice by a copy": lambda y, n: torch.where(y.clone() + 1 > n, 0, y),
    "masked": lambda y, n: y.masked_fill(y >= n, 0),
    "masked in place": lambda y, n: _put_behind(y.clone(), y >= n, 0),
    "masked by itself": lambda y, n: (q := y.clone()).masked_fill_(q >= n, 0),
    "written where they are too large": lambda y, n: _put_behind(y.clone(), (y >= n).nonzero(), 0),
    "filled where they are too large": lambda y, n: y.index_fill(0, (y >= n).nonzero()[:, 0], 0),
    "taken where they fit": lambda y, n: y[y < n][: y.shape[0]],
    "selected where they fit": lambda y, n: y.masked_select(y < n)[: y.shape[0]],
}


@pytest.mark.parametrize("bs", [5, 1])
@pytest.mark.parametrize("name", FITTED)
def test_values_that_were_made_to_fit_an_axis_may_count_along_it(name: str, bs: int) -> None:
    def read(t: Trace, w: Worker, b: Batch) -> None:
        fitted = FITTED[name](b.lens, t.size("num_draft_tokens"))
        w.read(fitted.new_empty(b.rows.shape).copy_(fitted), None)

    assert _findings(read, bs=bs) == []


def _stored(t: Trace, b: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """A buffer whose first part holds lengths, and the view that they were written through."""
    buffer = torch.zeros(t.size("padded_bs"), dtype=torch.int64)
    view = buffer[: t.size("bs")]
    view.copy_(b.lens)
    return buffer, view


# How the memory of a view that is kept may be written.
BEHIND: dict[str, Callable[[torch.Tensor, torch.Tensor, Batch], object]] = {
    "another view of it": lambda buffer, v, b: buffer[: v.shape[0]].copy_(b.rows),
    "zeros in another view": lambda buffer, v, b: buffer[: v.shape[0]].zero_(),
    "all of it": lambda buffer, v, b: buffer.copy_(b.rows[0]),
    "constants all over": lambda buffer, v, b: buffer.fill_(0),
    "numbers nobody knows": lambda buffer, v, b: buffer.random_(),
    "the same in another order": lambda buffer, v, b: buffer.copy_(buffer.flip(0)),
    "several at once": lambda buffer, v, b: torch._foreach_copy_([buffer], [b.rows[:1]]),
    "a result": lambda buffer, v, b: torch.add(b.rows, 1, out=buffer[: v.shape[0]]),
    "some behind a mask": lambda buffer, v, b: buffer.masked_fill_(buffer > 0, 0),
    "arithmetic": lambda buffer, v, b: buffer.add_(1),
}


@pytest.mark.parametrize("bs", [5, 1])
@pytest.mark.parametrize("name", BEHIND)
def test_a_kept_view_forgets_what_its_memory_held_before_a_write(name: str, bs: int) -> None:
    def reused(t: Trace, w: Worker, b: Batch) -> None:
        buffer, view = _stored(t, b)
        w.write(t.tensor("bs topk", torch.int64), view)
        BEHIND[name](buffer, view, b)
        w.read(view, None)

    assert _findings(reused, bs=bs, padded_bs=6) == []


def test_a_kept_view_counts_what_was_written_through_it_last() -> None:
    def read(t: Trace, w: Worker, b: Batch) -> None:
        buffer, view = _stored(t, b)
        buffer.zero_()
        view.copy_(b.lens)
        view[b.rows > 0] = 0
        w.read(view, None)

    (said,) = _findings(read)
    assert "got positions along max_context" in said


# What leaves constants or laid out positions in all of `y`.
LAID: dict[str, Callable[[torch.Tensor], object]] = {
    "zeros": lambda y: y.zero_(),
    "one number": lambda y: y.fill_(1),
    "a slice of all": lambda y: y.__setitem__(slice(None), 1),
    "copied zeros": lambda y: y.copy_(torch.zeros_like(y)),
    "copied positions": lambda y: y.copy_(torch.arange(y.shape[0])),
    "positions as a result": lambda y: torch.arange(y.shape[0], out=y),
    "zeros as a result": lambda y: torch.zeros(y.shape, dtype=y.dtype, out=y),
    "positions one further": lambda y: y.copy_(torch.arange(y.shape[0])).add_(1),
    "several tensors at once": lambda y: torch._foreach_zero_([y]),
    "several copies at once": lambda y: torch._foreach_copy_([y], [torch.zeros_like(y)]),
}


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("name", LAID)
def test_constants_written_over_all_values_may_count_anything(name: str, *, part: bool) -> None:
    def dummy(t: Trace, w: Worker, b: Batch) -> None:
        y = t.tensor("padded_bs", torch.int64)[: t.size("bs")] if part else b.lens
        LAID[name](y)
        w.read(y, None)
        w.write(t.tensor("bs topk", torch.int64), y)

    assert _findings(dummy, padded_bs=6) == []


def test_a_part_of_a_memory_that_was_cleared_in_parts_may_be_constants() -> None:
    def dummy(t: Trace, w: Worker, b: Batch) -> None:
        size = t.size("bs")
        buffer = t.tensor("padded_bs", torch.int64)
        buffer[:size].zero_()
        part = buffer[:size]
        w.read(part, None)
        w.write(t.tensor("bs topk", torch.int64), part)

    assert _findings(dummy, padded_bs=6) == []


def test_random_numbers_are_no_constants() -> None:
    def drawn(t: Trace, w: Worker, b: Batch) -> None:
        rows = torch.zeros_like(b.rows).random_()
        w.read(rows, None)
        w.write(t.tensor("bs topk", torch.int64), rows)

    (said,) = _findings(drawn)
    assert "got positions along req_rows" in said


def test_the_bytes_of_values_are_other_numbers() -> None:
    def halves(t: Trace, w: Worker, b: Batch) -> None:
        w.read(b.lens.view(torch.int32)[::2].long(), None)
        w.read(b.lens.view(torch.int32).clone().long()[: t.size("bs")], None)
        w.read(b.lens.view(torch.float64).view(torch.int64), None)

    assert _findings(halves) == []


# How the bytes of lengths may be written as other numbers.
RECAST: dict[str, Change] = {
    "zeros": lambda y, b: y.zero_(),
    "others": lambda y, b: y.copy_(y.flip(0)),
    "some behind a mask": lambda y, b: y.masked_fill_(y > 0, 0),
    "a part": lambda y, b: y[::2].zero_(),
}


@pytest.mark.parametrize("name", RECAST)
def test_what_is_written_as_other_numbers_is_no_longer_what_it_was(name: str) -> None:
    def written(t: Trace, w: Worker, b: Batch) -> None:
        RECAST[name](b.lens.view(torch.int32), b)
        w.read(b.lens, None)

    assert _findings(written) == []


def test_a_sort_gives_positions_along_its_axis_where_that_is_a_table() -> None:
    def sorted_columns(t: Trace, w: Worker, b: Batch) -> None:
        w.read(t.tensor("bs max_context").argsort(-1)[:, 0], None)

    def sorted_rows(t: Trace, w: Worker, b: Batch) -> None:
        w.read(t.tensor("req_rows").argsort()[: t.size("bs")], None)
        w.read(t.tensor("bs req_rows").cummax(1).indices[:, 0], None)
        w.read(t.tensor("bs topk").argsort(-1)[:, 0], None)  # in front of the rows, perhaps

    (said,) = _findings(sorted_columns)
    assert "got positions along max_context" in said
    assert _findings(sorted_rows) == []


def test_ids_that_were_sorted_are_ids_of_the_same_vocabulary() -> None:
    class Drafter:
        def __init__(self, dims: Dims) -> None:
            self.dims = dims

        @contract
        def take(self, tokens: Annotated[Int64[Tensor, "bs"], ids("draft")], bs: Rows) -> None: ...

    def swapped(t: Trace, w: Worker, b: Batch) -> None:
        Drafter(t.dims).take(b.tokens.sort().values, b.rows)

    (said,) = _findings(swapped)
    assert said.startswith("SHP305")


def test_the_verdict_does_not_depend_on_the_order_of_arguments() -> None:
    last = Annotated[Int64[Tensor, "bs*topk"], indexes("bs*topk")] | None
    size = Int64[Tensor, "bs"] | None

    @contract
    def mark_first(dims: Dims, last: last, bs: size) -> None: ...

    @contract
    def axis_first(dims: Dims, bs: size, last: last) -> None: ...

    @contract
    def tokens_first(
        dims: Dims,
        last: Annotated[Int64[Tensor, "bs"], indexes("tokens")] | None,
        states: Float[Tensor, "tokens"] | None,
        bs: size,
    ) -> None: ...

    for step in (mark_first, axis_first):
        with trace() as t:
            rows = torch.arange(t.size("bs*topk")) + 1
            step(t.dims, last=rows, bs=t.tensor("bs", torch.int64))
        assert [one.code for one in t.report().findings] == ["SHP307"]
    with trace() as t:
        rows = torch.arange(t.size("bs"))
        states = t.tensor("bs")[:-1]
        tokens_first(t.dims, rows, states, t.tensor("bs", torch.int64))
    assert [one.code for one in t.report().findings] == ["SHP307"]


def test_a_contract_without_dims_is_judged_by_those_of_the_trace() -> None:
    class Table:
        @contract
        def read(self, rows: Rows, columns: Lens) -> None: ...

    @contract
    def slots(slots: Slots, bs: Int64[Tensor, "bs topk"]) -> None: ...

    def swapped(t: Trace, w: Worker, b: Batch) -> None:
        Table().read(b.rows, b.lens)
        Table().read(b.lens, b.rows)

    def mixed(t: Trace, w: Worker, b: Batch) -> None:
        table = b.rows[:, None].expand(-1, t.size("topk"))
        slots(table, table)

    assert [one.partition(" ")[0] for one in _findings(swapped)] == ["SHP307"]
    assert [one.partition(" ")[0] for one in _findings(mixed)] == ["SHP307"]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_sparse_index_crosses() -> None:
    with trace() as t:
        worker, batch = Worker(t.dims), _batch(t)
        places = torch.zeros(1, t.size("bs"), dtype=torch.int64)
        sparse = torch.sparse_coo_tensor(places, batch.lens, (t.size("bs"),), is_coalesced=True)
        worker.read(sparse, None)
        worker.sampled(sparse, batch.lens)
    assert t.report().findings == ()


@pytest.mark.parametrize("bs", [5, 1])
@pytest.mark.parametrize("name", MIXED)
def test_what_counts_along_another_axis_is_refused(name: str, bs: int) -> None:
    run, count = MIXED[name]
    said = _findings(run, bs=bs)
    assert len(said) == count
    assert all(one.startswith(("SHP307", "SHP305")) for one in said)


def test_the_finding_names_both_axes_and_where_the_values_came_from() -> None:
    with trace() as t:
        worker, batch = Worker(t.dims), _batch(t)
        worker.step(batch)
        worker.read(batch.lens, None)
    (finding,) = t.report().findings
    assert finding.code == "SHP307"
    assert "positions along req_rows belong here, got positions along max_context" in (
        finding.message
    )
    notes = [note.message for note in finding.notes]
    assert any("since argument batch.lens of Worker.step" in note for note in notes)
    assert any(note.startswith("req_rows comes from") for note in notes)


def test_an_index_known_to_be_beyond_is_refused_at_the_boundary() -> None:
    with trace() as t:
        rows = torch.arange(t.size("bs*topk")) + 1
        Worker(t.dims).parents(rows, t.tensor("bs", torch.int64))
    (finding,) = t.report().findings
    assert finding.code == "SHP307"
    assert "an index that reaches bs*topk" in finding.message


def _packed(t: Trace, w: Worker, b: Batch) -> None:
    """Rows and lengths go to the device in one copy."""
    both = torch.stack([b.rows, b.lens])
    rows, lens = both
    w.read(rows, None)
    w.write(t.tensor("bs topk", torch.int64), lens)
    w.read(both[0], None)
    w.write(t.tensor("bs topk", torch.int64), both[1])


def _packed_in_place(t: Trace, w: Worker, b: Batch) -> None:
    both = torch.zeros(2, t.size("bs"), dtype=torch.int64)
    both[0].copy_(b.rows)
    both[1] = b.lens
    w.read(both[0], None)
    w.write(t.tensor("bs topk", torch.int64), both[1])


def _packed_flat(t: Trace, w: Worker, b: Batch) -> None:
    size = t.size("bs")
    both = torch.cat([b.rows, b.lens])
    w.read(both[:size], None)
    w.write(t.tensor("bs topk", torch.int64), both[size:])


def _scratch(t: Trace, w: Worker, b: Batch) -> None:
    """One buffer serves rows first and lengths later."""
    scratch = torch.empty_like(b.rows)
    scratch.copy_(b.rows)
    w.read(scratch, None)
    torch.add(b.lens, 1, out=scratch)
    w.write(t.tensor("bs topk", torch.int64), scratch)
    scratch.copy_(b.tokens - 1)
    w.read(scratch, None)
    scratch.copy_(b.lens)
    w.write(t.tensor("bs topk", torch.int64), scratch)


def _scratch_in_parts(t: Trace, w: Worker, b: Batch) -> None:
    size = t.size("bs")
    scratch = torch.zeros(t.size("padded_bs"), dtype=torch.int64)
    scratch[:size] = b.rows
    w.read(scratch[:size], None)
    scratch[:size] = b.lens
    w.write(t.tensor("bs topk", torch.int64), scratch[:size])


def _cleared(t: Trace, w: Worker, b: Batch) -> None:
    """Lengths that were overwritten whole are constants, which may count anything."""
    w.read(b.lens.clone().zero_(), None)
    w.read(b.lens.clone().fill_(2), None)
    lens = b.lens.clone()
    lens[:] = 0
    w.read(lens, None)
    b.lens.zero_()
    w.read(b.lens, None)


def _dummy(t: Trace, w: Worker, b: Batch) -> None:
    """A warm-up fills every field with the same zeros, or with rows in order."""
    for filler in (torch.zeros_like(b.rows), torch.arange(t.size("bs")), torch.ones_like(b.rows)):
        for same in (filler, filler + 1, filler.clone(), filler[:], filler.to(torch.int64)):
            w.step(Batch(same, same, same, same, b.states))


def _padded(t: Trace, w: Worker, b: Batch) -> None:
    """Rows behind the live ones are pads; what indexes the live rows indexes all of them."""
    size = t.size("bs")
    padded = torch.zeros(t.size("padded_bs"), dtype=torch.int64)
    padded[:size] = b.rows
    padded[size:].zero_()
    w.read(padded, None)
    rows = t.tensor("bs*topk", torch.int64)
    w.parents(rows, b.rows)
    w.parents(torch.cat([rows, rows]), torch.cat([b.rows, b.rows]))


def _arithmetic(t: Trace, w: Worker, b: Batch) -> None:
    """Another number is another index: a table of rows laid out one after the other."""
    slots = b.rows[:, None] * t.size("max_context") + b.lens[:, None]
    w.write(slots.expand(-1, t.size("topk")), b.lens + 1)
    w.read(b.lens // 16, None)
    moved = b.lens.clone()
    moved.floor_divide_(16)
    w.read(moved, None)


def _looked_up(t: Trace, w: Worker, b: Batch) -> None:
    """What a table holds is another index than what it is read with."""
    table = t.tensor("req_rows max_context", torch.int64)
    slots = table[b.rows, b.lens]
    w.write(slots[:, None].expand(-1, t.size("topk")), b.lens)
    row_of_slot = t.tensor("num_slots", torch.int64)
    w.read(row_of_slot[slots], None)


def _masked(t: Trace, w: Worker, b: Batch) -> None:
    live = b.lens > 0
    kept = b.rows[live]
    w.read(kept, None)
    w.read(b.rows.where(live, 0), None)
    w.read(torch.where(live, b.rows, b.lens // 16), None)


def _mixed_choice(t: Trace, w: Worker, b: Batch) -> None:
    """Of two kinds of values nobody knows which are left."""
    w.read(torch.where(b.tokens > 0, b.rows, b.lens), None)


def _sorted(t: Trace, w: Worker, b: Batch) -> None:
    order = b.lens.argsort()
    w.read(b.rows[order], None)
    w.write(t.tensor("bs topk", torch.int64), b.lens.sort().values)
    w.step(Batch(b.rows[order], b.lens[order], b.tokens[order], order, b.states))


def _filtered(t: Trace, w: Worker, b: Batch) -> None:
    """A smaller batch is another batch: its rows are counted anew."""
    kept = t.tensor("bs", torch.int64)
    w.step(Batch(b.rows[kept], b.lens[kept], b.tokens[kept], b.last[kept], b.states))
    half = t.tensor("bs*topk", torch.int64)
    w.parents(half, b.rows)


def _joined(t: Trace, w: Worker, b: Batch) -> None:
    """An idle batch joins; a pad row is put in front."""
    none = torch.zeros(0, dtype=torch.int64)
    w.read(torch.cat([b.rows, none]), None)
    w.read(torch.cat([torch.zeros(1, dtype=torch.int64), b.rows]), None)
    w.write(t.tensor("bs topk", torch.int64), torch.nn.functional.pad(b.lens, (0, 0)))


CORRECT: dict[str, Run] = {
    "itself": lambda t, w, b: w.step(b),
    "packed for one copy": _packed,
    "packed in place": _packed_in_place,
    "packed end to end": _packed_flat,
    "a buffer of several lives": _scratch,
    "a part of a buffer of several lives": _scratch_in_parts,
    "a buffer that was cleared": _cleared,
    "a dummy batch": _dummy,
    "padded rows": _padded,
    "arithmetic": _arithmetic,
    "a look-up between": _looked_up,
    "masks and pads": _masked,
    "a choice of both": _mixed_choice,
    "a sorted batch": _sorted,
    "a filtered batch": _filtered,
    "a batch that is joined": _joined,
}


@pytest.mark.parametrize("bs", [5, 1, 0])
@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_is_clean(name: str, bs: int) -> None:
    assert _findings(CORRECT[name], bs=bs) == []


def test_one_axis_by_permission() -> None:
    with trace() as t:
        t.allow("req_rows == max_context", reason="a table as wide as it is long")
        worker, batch = Worker(t.dims), _batch(t)
        worker.step(batch)
        worker.read(batch.lens, None)
    assert t.report().findings == ()
