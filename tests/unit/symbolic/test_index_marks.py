"""Marks of indices under trace: what keeps them, and where values are others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from shapecheck.symbolic import Trace

from .indexed import Batch, Worker, findings

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

    (said,) = findings(read, bs=bs)
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

    assert findings(read, bs=bs) == []


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

    assert findings(read, bs=bs) == []


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

    assert findings(reused, bs=bs, padded_bs=6) == []


def test_a_kept_view_counts_what_was_written_through_it_last() -> None:
    def read(t: Trace, w: Worker, b: Batch) -> None:
        buffer, view = _stored(t, b)
        buffer.zero_()
        view.copy_(b.lens)
        view[b.rows > 0] = 0
        w.read(view, None)

    (said,) = findings(read)
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

    assert findings(dummy, padded_bs=6) == []


def test_a_part_of_a_memory_that_was_cleared_in_parts_may_be_constants() -> None:
    def dummy(t: Trace, w: Worker, b: Batch) -> None:
        size = t.size("bs")
        buffer = t.tensor("padded_bs", torch.int64)
        buffer[:size].zero_()
        part = buffer[:size]
        w.read(part, None)
        w.write(t.tensor("bs topk", torch.int64), part)

    assert findings(dummy, padded_bs=6) == []


def test_random_numbers_are_no_constants() -> None:
    def drawn(t: Trace, w: Worker, b: Batch) -> None:
        rows = torch.zeros_like(b.rows).random_()
        w.read(rows, None)
        w.write(t.tensor("bs topk", torch.int64), rows)

    (said,) = findings(drawn)
    assert "got positions along req_rows" in said


def test_the_bytes_of_values_are_other_numbers() -> None:
    def halves(t: Trace, w: Worker, b: Batch) -> None:
        w.read(b.lens.view(torch.int32)[::2].long(), None)
        w.read(b.lens.view(torch.int32).clone().long()[: t.size("bs")], None)
        w.read(b.lens.view(torch.float64).view(torch.int64), None)

    assert findings(halves) == []


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

    assert findings(written) == []
