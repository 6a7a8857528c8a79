"""Ranks and dtypes that the real kernel refuses and its fake takes, and refusals without names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from shapecheck.symbolic import Report, Trace, trace

Run = Callable[[Trace], object]


def _traced(run: Run) -> Report:
    with trace() as t:
        t.tensor("bs target_hidden") + t.tensor("bs target_hidden")
        t.run(run, t)
    return t.report()


def _index_of_two_axes(t: Trace) -> object:
    return t.tensor("num_slots topk").index_select(0, t.tensor("bs topk", torch.int64))


def _counts_of_two_axes(t: Trace) -> object:
    return torch.bincount(t.tensor("bs topk", torch.int64), minlength=7)


def _counts_of_no_history(t: Trace) -> object:
    """Without a dtype a list of no tokens is one of floats."""
    return torch.bincount(torch.tensor([]), minlength=t.size("target_vocab"))


@pytest.mark.parametrize("run", [_index_of_two_axes, _counts_of_two_axes, _counts_of_no_history])
def test_what_the_real_kernel_refuses_is_found(run: Run) -> None:
    report = _traced(run)
    assert [finding.code for finding in report.findings] == ["SHP203"]
    assert report.findings[0].primary is not None
    assert report.findings[0].primary.path.endswith("test_kernels.py")


def _shifted_floats(t: Trace) -> object:
    return torch.zeros(0) >> 3


def _row_of_a_vector(t: Trace) -> object:
    counts = torch.zeros(4)
    counts[0] = torch.zeros(9)
    return counts


@pytest.mark.parametrize("run", [_shifted_floats, _row_of_a_vector])
def test_a_refused_rank_or_dtype_without_names_shows_its_operands(run: Run) -> None:
    report = _traced(run)
    assert [finding.code for finding in report.findings] == ["SHP203"]
    assert report.exit_code == 1
    assert any(note.message == "made here" for note in report.findings[0].notes)


# What the fake kernel refuses too, what it takes, and reshapes that leave a size open.
NO_ROWS: dict[str, Run] = {
    "the best along it": lambda t: torch.zeros(4, 0).argmax(dim=1),
    "the best of a batch": lambda t: t.tensor("bs topk").argmax(0),
    "the largest of all": lambda t: t.tensor("bs", torch.int64).max(),
    "the largest of each column": lambda t: t.tensor("bs topk").softmax(-1).max(0),
    "a view of an open size": lambda t: t.tensor("bs topk num_steps").view(t.size("bs"), -1),
    "a reshape of an open size": lambda t: t.tensor("bs*topk num_steps").reshape(
        t.size("bs"), t.size("topk"), -1
    ),
    "a split axis of an open size": lambda t: t.tensor("bs*topk").unflatten(0, (t.size("bs"), -1)),
    "rows that a quotient counts": lambda t: t.tensor("bs*topk num_steps").view(
        t.size("bs*topk") // t.size("topk"), -1
    ),
    "a torn axis of no names": lambda t: torch.zeros(5)[: t.size("bs")].view(t.size("bs"), -1),
}
SOME_ROWS: dict[str, Run] = {
    "sizes in words": lambda t: t.tensor("bs topk num_steps").view(
        t.size("bs"), t.size("topk*num_steps")
    ),
    "axes that are merged": lambda t: t.tensor("bs topk num_steps").flatten(1),
    "an axis that is split": lambda t: t.tensor("bs topk*num_steps").unflatten(
        1, (t.size("topk"), -1)
    ),
    "rows that are open": lambda t: t.tensor("bs*topk num_steps").view(
        -1, t.size("topk"), t.size("num_steps")
    ),
    "the best of each": lambda t: t.tensor("bs topk").argmax(1),
    "a sum over them": lambda t: t.tensor("bs topk").sum(0),
    "what each token has of its request": lambda t: t.tensor("bs topk")[
        t.tensor("tokens", torch.int64)
    ],
    "one for each of so many": lambda t: t.tensor("bs").repeat_interleave(
        t.tensor("bs", torch.int64), output_size=t.size("tokens")
    ),
    "nothing of nothing": lambda t: t.tensor("bs topk")[t.tensor("bs", torch.int64)],
}


@pytest.mark.parametrize("name", NO_ROWS)
def test_an_axis_of_no_rows_that_torch_refuses_is_found(name: str) -> None:
    with trace(hints={"bs": 0}) as t:
        t.run(NO_ROWS[name], t)
    (finding,) = t.report().findings
    assert finding.code == "SHP203"
    assert "no rows" in finding.message
    assert {note.message for note in finding.notes} >= {"made here"}
    remedy = next(note.message for note in finding.notes if note.label == "settle it")
    assert ("-1" in remedy) == ("-1" in finding.message)
    with trace() as t:
        t.run(NO_ROWS[name], t)
    assert len(t.report().findings) == (name == "the best along it")


def test_what_a_fake_kernel_refuses_is_reported_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with trace(hints={"bs": 0}) as t:
        t.run(NO_ROWS["the best of a batch"], t)
    assert len(t.report().findings) == 1
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


@pytest.mark.parametrize("name", SOME_ROWS)
def test_what_torch_takes_without_rows_is_clean(name: str) -> None:
    with trace(hints={"bs": 0}) as t:
        t.run(SOME_ROWS[name], t)
    assert (t.report().findings, t.report().stopped) == ((), None)


def test_sizes_that_disagree_without_rows_are_no_axis_of_no_rows() -> None:
    def disagree(t: Trace) -> object:
        return t.tensor("bs 3*target_hidden") + t.tensor("bs target_hidden")

    with trace(hints={"bs": 0}) as t:
        t.run(disagree, t)
    assert [one.code for one in t.report().findings] == ["SHP301"]


def _drawn(t: Trace) -> object:
    return torch.multinomial(t.tensor("bs target_vocab"), 1)


def _spread(t: Trace) -> object:
    return t.tensor("bs topk").gather(1, torch.ones(t.size("bs"), 1, dtype=torch.int64))


def _plain_numbers(t: Trace) -> object:
    return torch.zeros(3) + torch.zeros(4)


def _repeated(t: Trace) -> object:
    counts = torch.full((t.size("bs"),), 3, dtype=torch.int64)
    return t.tensor("bs topk").repeat_interleave(counts, dim=0, output_size=3 * t.size("bs"))


def _segments(t: Trace) -> object:
    lengths = t.tensor("bs", torch.int64)
    return torch.segment_reduce(t.tensor("tokens topk"), "sum", lengths=lengths, axis=0)


def _pinned(t: Trace) -> object:
    rows = t.tensor("bs")
    made = torch.empty_like(rows, pin_memory=True), rows.new_zeros(3, pin_memory=True)
    return made, rows.pin_memory()


def _too_large(t: Trace) -> object:
    line = torch.zeros(1 << 21)
    return line[:, None] * line[None, :], t.tensor("bs").new_zeros((1 << 20, 1 << 21))


def _behind_a_mask(t: Trace) -> None:
    """As many values as the mask has places."""
    lens, rows = (t.tensor("bs", torch.int64) for _ in range(2))
    lens[rows > 0] = rows[rows > 0]


def _written_behind_a_mask(t: Trace, values: Tensor) -> None:
    rows = t.tensor("bs")
    rows[rows > 0] = values


@pytest.mark.parametrize("kind", ["another dtype", "a rank too many"])
def test_what_no_mask_takes_is_found(kind: str) -> None:
    values: dict[str, Run] = {
        "another dtype": lambda t: t.tensor("bs").bfloat16(),
        "a rank too many": lambda t: t.tensor("bs topk"),
    }
    report = _traced(lambda t: _written_behind_a_mask(t, values[kind](t)))
    assert [finding.code for finding in report.findings] == ["SHP203"]


def _behind_a_mask_and_more(t: Trace) -> None:
    table, rows = t.tensor("bs topk num_steps"), t.tensor("bs")
    table[rows > 0, 0] = table[rows > 0, 1]
    table[table[:, :, 0] > 0] = t.tensor("num_steps")


VALUES: dict[str, Run] = {
    "values behind a mask and an index": _behind_a_mask_and_more,
    "values behind a mask": _behind_a_mask,
    "counts that add up": _repeated,
    "segments that add up": _segments,
    "pinned memory": _pinned,
    "more memory than there is": _too_large,
    "the best of each": lambda t: t.tensor("bs topk").softmax(-1).max(1),
}


@pytest.mark.parametrize("bs", [None, 1, 0])
@pytest.mark.parametrize("name", VALUES)
def test_correct_code_is_not_refused_by_a_kernel(name: str, bs: int | None) -> None:
    with trace(hints={} if bs is None else {"bs": bs}) as t:
        t.run(VALUES[name], t)
    report = t.report()
    assert (report.findings, report.stopped) == ((), None)


def test_an_operator_of_a_project_never_runs() -> None:
    calls: list[torch.Size] = []

    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such rows")

    def run(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.shape)
        return refuse(x)

    library = torch.library.Library("shapecheck_test_kernels", "DEF")
    library.define("rows(Tensor x) -> Tensor")
    library.impl("rows", run, "CPU")
    torch.library.register_fake("shapecheck_test_kernels::rows", refuse)
    rows = torch.ops.shapecheck_test_kernels.rows
    _traced(lambda t: rows(t.tensor("bs")))
    _traced(lambda t: rows.default(t.tensor("bs")))
    assert calls == []


@pytest.mark.parametrize("run", [_drawn, _spread, _plain_numbers])
def test_a_refusal_of_values_or_plain_numbers_is_none(run: Run) -> None:
    assert _traced(run).findings == ()
