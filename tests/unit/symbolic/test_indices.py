"""Indices under trace: a value counts along the axis that a contract named first."""

from __future__ import annotations

from typing import Annotated

import pytest
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from shapecheck import Dims, contract, ids, indexes
from shapecheck.symbolic import Trace, trace

from .indexed import Batch, Lens, Rows, Run, Slots, Worker, batch_of, findings


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


def test_a_sort_gives_positions_along_its_axis_where_that_is_a_table() -> None:
    def sorted_columns(t: Trace, w: Worker, b: Batch) -> None:
        w.read(t.tensor("bs max_context").argsort(-1)[:, 0], None)

    def sorted_rows(t: Trace, w: Worker, b: Batch) -> None:
        w.read(t.tensor("req_rows").argsort()[: t.size("bs")], None)
        w.read(t.tensor("bs req_rows").cummax(1).indices[:, 0], None)
        w.read(t.tensor("bs topk").argsort(-1)[:, 0], None)  # in front of the rows, perhaps

    (said,) = findings(sorted_columns)
    assert "got positions along max_context" in said
    assert findings(sorted_rows) == []


def test_ids_that_were_sorted_are_ids_of_the_same_vocabulary() -> None:
    class Drafter:
        def __init__(self, dims: Dims) -> None:
            self.dims = dims

        @contract
        def take(self, tokens: Annotated[Int64[Tensor, "bs"], ids("draft")], bs: Rows) -> None: ...

    def swapped(t: Trace, w: Worker, b: Batch) -> None:
        Drafter(t.dims).take(b.tokens.sort().values, b.rows)

    (said,) = findings(swapped)
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

    assert [one.partition(" ")[0] for one in findings(swapped)] == ["SHP307"]
    assert [one.partition(" ")[0] for one in findings(mixed)] == ["SHP307"]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_sparse_index_crosses() -> None:
    with trace() as t:
        worker, batch = Worker(t.dims), batch_of(t)
        places = torch.zeros(1, t.size("bs"), dtype=torch.int64)
        sparse = torch.sparse_coo_tensor(places, batch.lens, (t.size("bs"),), is_coalesced=True)
        worker.read(sparse, None)
        worker.sampled(sparse, batch.lens)
    assert t.report().findings == ()


@pytest.mark.parametrize("bs", [5, 1])
@pytest.mark.parametrize("name", MIXED)
def test_what_counts_along_another_axis_is_refused(name: str, bs: int) -> None:
    run, count = MIXED[name]
    said = findings(run, bs=bs)
    assert len(said) == count
    assert all(one.startswith(("SHP307", "SHP305")) for one in said)


def test_the_finding_names_both_axes_and_where_the_values_came_from() -> None:
    with trace() as t:
        worker, batch = Worker(t.dims), batch_of(t)
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
    assert findings(CORRECT[name], bs=bs) == []


def test_one_axis_by_permission() -> None:
    with trace() as t:
        t.allow("req_rows == max_context", reason="a table as wide as it is long")
        worker, batch = Worker(t.dims), batch_of(t)
        worker.step(batch)
        worker.read(batch.lens, None)
    assert t.report().findings == ()
