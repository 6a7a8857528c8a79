"""Indices that reach farther than their axis: known values, whatever made them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from shapecheck.symbolic import Trace, trace
from shapecheck.symbolic.stub import Stub

Run = Callable[[Trace], object]


def _messages(run: Run) -> list[str]:
    with trace() as t:
        run(t)
    return [finding.message for finding in t.report().findings if finding.code == "SHP401"]


def _rows(t: Trace, factor: str = "num_draft_tokens") -> Tensor:
    """The first of N rows of each request."""
    return t.size(factor) * torch.arange(t.size("bs"))


def _table(t: Trace, rows: str) -> Tensor:
    return t.tensor(f"{rows} target_hidden")


def _column(t: Trace, width: int, *, placed: bool = False) -> Tensor:
    """One column behind the table's own takes what is not accepted."""
    accepted = t.tensor("bs", torch.bool)
    if placed:
        accepted = accepted & (torch.arange(t.size("bs")) > 0)
    column = torch.where(accepted, t.tensor("bs", torch.int64), width)
    return torch.zeros(t.size("bs"), t.size("num_steps"), dtype=torch.int64).scatter(
        1, column[:, None], 1
    )


def _padding(t: Trace, row: int) -> Tensor:
    """All rows of a static buffer are padding and select `row`."""
    select = torch.zeros(t.size("padded_bs"), dtype=torch.int64)
    select[0:] = row
    return _table(t, "padded_bs*num_draft_tokens")[select]


def _law(t: Trace, laws: int) -> Tensor:
    """The columns of a join, found where two ids are the same, from a join of `laws` parts."""
    same = t.tensor("bs num_draft_tokens topk", torch.bool)
    columns = torch.where(same, torch.arange(t.size("topk")), 0).sum(dim=2)
    parts = [t.tensor("bs 1"), t.tensor("bs topk-1")]
    return torch.cat(parts[:laws], dim=1).gather(1, columns)


def _sentinel_first(t: Trace) -> Tensor:
    """Ids of a request behind the root, which is -1."""
    root = torch.full((t.size("bs"), 1), -1, dtype=torch.int64)
    return torch.cat([root, t.tensor("bs topk", torch.int64)], dim=1)


BEYOND: dict[str, Run] = {
    "arange over another axis": lambda t: _table(t, "bs")[torch.arange(t.size("bs") + 1)],
    "a factor too many": lambda t: _table(t, "bs")[_rows(t)],
    "a column less than the pad needs": lambda t: _column(t, t.size("num_steps")),
    "the same where positions count": lambda t: _column(t, t.size("num_steps"), placed=True),
    "one row of a later request for all padding": lambda t: _padding(t, t.size("num_draft_tokens")),
    "a part forgotten in a join": lambda t: _law(t, 1),
    "positions of a longer axis": lambda t: t.tensor("bs num_steps-1").gather(
        1, t.tensor("bs num_steps").topk(2).indices
    ),
    "a limit one too high": lambda t: t.tensor("bs topk").gather(
        1, t.tensor("bs topk", torch.int64).clamp(max=t.size("topk"))
    ),
    "a last row of each, one too many": lambda t: _table(t, "bs*num_draft_tokens").index_select(
        0, _rows(t) + t.size("num_draft_tokens")
    ),
    "an index behind a copy and a view": lambda t: torch.nn.functional.embedding(
        torch.arange(t.size("bs") + 1).to(torch.int32).view(1, -1), _table(t, "bs")
    ),
    "a written index": lambda t: t.tensor("bs topk").index_copy_(
        1, torch.arange(t.size("topk")) + 1, t.tensor("bs topk")
    ),
    "a pad that a join begins with": lambda t: t.tensor("bs topk").gather(
        1, _sentinel_first(t)[:, :1]
    ),
    "an order of requests in each of them": lambda t: t.tensor("bs num_draft_tokens").gather(
        1, t.tensor("bs num_draft_tokens", torch.int32).argsort(dim=0, stable=True)
    ),
    "below the first": lambda t: t.tensor("bs topk").gather(
        1, torch.full((t.size("bs"), 1), -1, dtype=torch.int64)
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_an_index_beyond_its_axis_is_found(name: str) -> None:
    (message,) = _messages(BEYOND[name])
    assert "an index reaches" in message


def _guarded(t: Trace) -> Tensor:
    """No first one: N stands for it, and becomes a pad that is clamped away."""
    width = t.size("num_draft_tokens")
    nodes = torch.arange(width)
    flags = t.tensor("bs num_draft_tokens num_draft_tokens", torch.bool)
    first = torch.where(flags, nodes, width).amin(dim=-1)
    first = torch.where(first == width, -1, first)
    return t.tensor("bs num_draft_tokens").gather(1, first.clamp(min=0))


def _not_the_last(t: Trace) -> Tensor:
    nodes = torch.arange(t.size("bs"))
    return _table(t, "bs")[torch.where(nodes < t.size("bs") - 1, nodes + 1, 0)]


def _rewritten(t: Trace) -> Tensor:
    select = torch.full((t.size("bs"),), t.size("bs"), dtype=torch.int64)
    select.copy_(t.tensor("bs", torch.int64))
    return _table(t, "bs")[select]


WITHIN: dict[str, Run] = {
    "its own rows": lambda t: _table(t, "bs*num_draft_tokens")[_rows(t)],
    "the last of each": lambda t: _table(t, "bs*num_draft_tokens")[
        _rows(t) + (t.size("num_draft_tokens") - 1)
    ],
    "a column for the pad": lambda t: _column(t, t.size("num_steps") - 1),
    "padding selects a row of its own": lambda t: _padding(t, 0),
    "all parts of a join": lambda t: _law(t, 2),
    "a pad that is clamped away": _guarded,
    "the condition leaves the last one out": _not_the_last,
    "other values since": _rewritten,
    "the end of a longer range": lambda t: _table(t, "bs")[torch.arange(t.size("bs") + 1)[:-1]],
    "a pad of -1 counts from the end": lambda t: _table(t, "bs")[
        torch.full((t.size("bs"),), -1, dtype=torch.int64)
    ],
    "nothing is looked up": lambda t: t.tensor("bs topk")[:, :0].gather(
        1, torch.zeros((t.size("bs"), 0), dtype=torch.int64)
    ),
}


@pytest.mark.parametrize("name", WITHIN)
def test_an_index_within_its_axis_is_clean(name: str) -> None:
    assert _messages(WITHIN[name]) == []


def _sentinels(t: Trace) -> Tensor:
    """Ids of a request with a -1 behind them."""
    end = torch.full((t.size("bs"), 1), -1, dtype=torch.int64)
    return torch.cat([t.tensor("bs topk", torch.int64), end], 1)


def _embedded(t: Trace, ids: Tensor) -> Tensor:
    return torch.nn.functional.embedding(ids, t.tensor("target_vocab target_hidden"))


def _ids(t: Trace) -> Tensor:
    return t.tensor("bs", torch.int64)


def _padded(t: Trace, how: str) -> Tensor:
    """Looks up steps, of which those that stand for none are left out or become the first."""
    width, here = t.size("num_draft_tokens"), t.tensor("bs", torch.bool)
    steps = torch.where(here, _ids(t), width)
    left = {
        "mask": lambda: steps[here],
        "comparison": lambda: steps[steps < width],
        "choice": lambda: torch.where(steps < width, steps, 0),
    }
    return _table(t, "num_draft_tokens")[left[how]()]


def _clamped(t: Trace) -> Tensor:
    width, ids = t.size("num_draft_tokens"), _ids(t)
    return _table(t, "num_draft_tokens")[torch.where(ids < width, ids.clamp(max=width), 0)]


def _filled(t: Trace) -> Tensor:
    ids = _sentinels(t)
    return _embedded(t, ids.masked_fill(ids < 0, 0))


def _selected(t: Trace) -> Tensor:
    ids = _sentinels(t)
    return _embedded(t, ids[ids >= 0])


def _selected_rows(t: Trace) -> Tensor:
    rows = torch.arange(t.size("bs") + 1)
    return _table(t, "bs")[rows[rows < t.size("bs")]]


def _repeated(t: Trace, *, sized: bool) -> Tensor:
    counts = torch.full((t.size("bs"),), 9, dtype=torch.int64)
    size = t.size("bs") * 9 if sized else None
    return _table(t, "bs").repeat_interleave(counts, dim=0, output_size=size)


def _first_rows(t: Trace, most: int) -> Tensor:
    return _table(t, "bs")[torch.arange(min(most, t.size("bs")))]


def _first_of_slice(t: Trace) -> Tensor:
    table = _table(t, "bs")
    return table[torch.arange(table[:4].shape[0])]


def _two_rows(t: Trace) -> Tensor | None:
    table = _table(t, "bs")
    return table.index_select(0, torch.arange(2)) if table.shape[0] >= 2 else None


def _written_out(t: Trace) -> Tensor:
    slots = torch.full((t.size("padded_bs"),), -1, dtype=torch.int64)
    part = slots[: t.size("bs")]
    torch.sub(_ids(t), 1, out=part)
    return _table(t, "num_slots").index_select(0, part)


def _written_each(t: Trace) -> Tensor:
    slots = torch.full((t.size("bs"),), -1, dtype=torch.int64)
    torch._foreach_copy_([slots], [_ids(t)])
    return _table(t, "num_slots").index_select(0, slots)


def _written_by_stub(t: Trace) -> Tensor:
    slots = torch.full((t.size("bs"),), -1, dtype=torch.int64)
    Stub("kernel", t.recorder.stub_used)[(1,)](slots)
    return _table(t, "num_slots").index_select(0, slots)


def _best_of_vocab(t: Trace) -> Tensor:
    logits = t.tensor("bs target_vocab+8")
    logits[:, t.size("target_vocab") :] = float("-inf")
    return _embedded(t, logits.argmax(-1))


def _best_of_filled(t: Trace) -> Tensor:
    logits = t.tensor("bs target_vocab+8")
    columns = torch.arange(t.size("target_vocab") + 8)
    masked = logits.masked_fill(columns >= t.size("target_vocab"), float("-inf")).softmax(-1)
    return _embedded(t, masked.topk(2).indices)


def _limits(t: Trace) -> Tensor:
    limit = torch.cat([torch.full((1,), 100), torch.zeros(9, dtype=torch.int64)])
    return torch.zeros(9)[torch.arange(10).clamp(max=limit)]


def _order_with_pad(t: Trace) -> Tensor:
    order = torch.cat([_ids(t).argsort(), torch.zeros(1, dtype=torch.int64)])
    return _table(t, "bs+1").index_select(0, order)


def _next_rows(t: Trace) -> Tensor:
    size = t.size("bs")
    rows = torch.where(torch.arange(size) < size - 1, torch.arange(size) + 1, 0)
    return _table(t, "bs")[rows]


def _rows_below(t: Trace) -> Tensor:
    size = t.size("topk")
    below = torch.ones(size, size, dtype=torch.bool).tril(-1)
    return _table(t, "topk")[torch.where(below, torch.arange(size) + 1, 0)]


def _overwritten_part(t: Trace) -> Tensor:
    ids = _sentinel_first(t)
    ids[:, 0] = _ids(t)
    return _embedded(t, ids[:, :1])


def _viewed_part(t: Trace) -> Tensor:
    """Of two columns joined, the first half of the flat view is none of the parts."""
    root = torch.full((t.size("bs"), 1), -1, dtype=torch.int64)
    flat = torch.cat([root, _ids(t)[:, None]], dim=1).view(2, -1)
    return _embedded(t, flat[1:, -1:])


def _square_part(t: Trace) -> Tensor:
    root = torch.full((1, t.size("topk") + 1), -1, dtype=torch.int64)
    square = torch.cat([root, t.tensor("topk topk+1", torch.int64)]).transpose(0, 1)
    return _embedded(t, square[:, 1:])


def _enough(t: Trace) -> Tensor | None:
    table = _table(t, "num_draft_tokens")
    if t.size("bs") > table.shape[0]:
        return None
    return table[torch.arange(t.size("bs"))]


CORRECT: dict[str, Run] = {
    "a mask that chose": lambda t: _padded(t, "mask"),
    "a comparison that selects": lambda t: _padded(t, "comparison"),
    "a comparison that chooses": lambda t: _padded(t, "choice"),
    "a limit behind a comparison": _clamped,
    "sentinels that are filled": _filled,
    "sentinels that are left out": _selected,
    "rows that are left out": _selected_rows,
    "sentinels that are sliced off": lambda t: _embedded(t, _sentinels(t)[:, :-1]),
    "repeats": lambda t: _repeated(t, sized=True),
    "repeats of unknown size": lambda t: _repeated(t, sized=False),
    "as many rows as there are": lambda t: _first_rows(t, 4),
    "a slice cut short": _first_of_slice,
    "two rows if there are": _two_rows,
    "written by out": _written_out,
    "written with others": _written_each,
    "written by what did not run": _written_by_stub,
    "the best of what is not masked": _best_of_vocab,
    "the best few of what is not filled": _best_of_filled,
    "what a join has behind its pad": lambda t: _embedded(t, _sentinel_first(t)[:, 1:]),
    "a part of a join, a step higher": lambda t: _embedded(t, _sentinel_first(t)[:, :1] + 1),
    "a part of a join that was overwritten": _overwritten_part,
    "a part of another view of a join": _viewed_part,
    "a part of what was joined by another axis": _square_part,
    "an order of requests among them": lambda t: _table(t, "bs").index_select(
        0, t.tensor("bs topk", torch.int64).argsort(dim=0)[:, 0]
    ),
    "as many rows as a graph holds": lambda t: _table(t, "padded_bs")[torch.arange(t.size("bs"))],
    "tokens of a dummy batch": lambda t: _embedded(t, torch.arange(t.size("bs"))),
    "requests in turns": lambda t: _table(t, "topk")[torch.arange(t.size("bs")) % t.size("topk")],
    "requests up to a limit": lambda t: _table(t, "topk")[
        torch.arange(t.size("bs")).clamp(max=t.size("topk") - 1)
    ],
    "a row for each request if there are enough": _enough,
    "a limit of each": _limits,
    "an order with a pad": _order_with_pad,
    "the next row but for the last": _next_rows,
    "rows below the diagonal": _rows_below,
    "sentinels under a given mask": lambda t: _embedded(
        t, torch.where(t.tensor("bs topk+1", torch.bool), _sentinels(t), 0)
    ),
    "an order in a ring": lambda t: _ids(t).argsort() % t.size("bs"),
}


@pytest.mark.parametrize("bs", [None, 1, 0])
@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_reaches_no_axis_end(name: str, bs: int | None) -> None:
    with trace(hints={} if bs is None else {"bs": bs}) as t:
        CORRECT[name](t)
    assert [one.message for one in t.report().findings if one.code == "SHP401"] == []


def test_values_that_are_declared_are_not_those_of_the_placeholder() -> None:
    with trace(setting="draft wider") as t:
        d2t = torch.zeros(t.size("draft_vocab"), dtype=torch.int64)
        t.offset(d2t, "draft_vocab", "target_vocab")
        hot = torch.arange(t.size("draft_vocab")) + d2t
        torch.zeros(t.size("target_vocab"), dtype=torch.bool)[hot] = True
    assert t.report().findings == ()
