"""A sweep: one bug is one finding, which says with what numbers it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from shapecheck import Dims, carrier, contract, dtype
from shapecheck.symbolic import Run, Trace, sweep
from shapecheck.symbolic.sweep import STANDARD

Subject = Callable[[Trace], object]
EVERY = "every setting"


@carrier
@dataclass
class State:
    first: Annotated[Float[Tensor, "bs target_hidden"], dtype("target")]
    second: Annotated[Float[Tensor, "bs target_hidden"], dtype("target")]


class Worker:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract
    def step(self, state: State, tokens: Float[Tensor, "bs"]) -> None: ...


def _crossed(t: Trace, hidden: str, kind: str) -> None:
    """One bug: the second field is made for the other model."""
    state = State(t.tensor("bs target_hidden", "target"), t.tensor(f"bs {hidden}", kind))
    Worker(t.dims).step(state, t.tensor("bs"))


ONE: dict[str, tuple[Subject, str, str]] = {
    "two widths": (
        lambda t: t.tensor("bs draft_hidden") + t.tensor("bs target_hidden"), "SHP301", EVERY
    ),
    "rows that are a number in some": (
        lambda t: torch.stack([t.tensor("bs"), t.tensor("padded_bs")]), "SHP303", EVERY
    ),
    "what torch says in its own words": (
        lambda t: t.tensor("padded_bs target_hidden")[: t.size("bs")].copy_(
            t.tensor("bs draft_hidden")
        ),
        "SHP301",
        EVERY,
    ),
    "axes in another order": (
        lambda t: t.tensor("bs target_heads topk").reshape(
            t.size("bs*topk"), t.size("target_heads")
        ),
        "SHP303",
        "equal | equal, bs=1 | draft wider | target wider",
    ),
    "two dtypes": (
        lambda t: t.tensor("bs topk", "target") * t.tensor("bs topk", "draft"), "SHP304", EVERY
    ),
    "ranks that are joined": (
        lambda t: torch.cat([t.tensor("bs").to(torch.int32), t.tensor("tokens", torch.int64)]),
        "SHP203",
        EVERY,
    ),
    "a width at a contract": (lambda t: _crossed(t, "draft_hidden", "target"), "SHP201", EVERY),
    "a dtype at a contract": (lambda t: _crossed(t, "target_hidden", "draft"), "SHP304", EVERY),
    "what only no rows show": (
        lambda t: t.tensor("bs topk").argmax(0),
        "SHP203",
        "equal, bs=0, tokens=0",
    ),
}  # fmt: skip


def _found(subject: Subject, **options: object) -> list[tuple[str, str]]:
    report = sweep(subject, **options)  # type: ignore[arg-type]  # options of the test
    return [
        (one.code, next(note.message for note in one.notes if note.label == "found with"))
        for one in report.findings
    ]


@pytest.mark.parametrize("name", ONE)
def test_one_bug_is_one_finding_with_its_settings(name: str) -> None:
    subject, code, settings = ONE[name]
    assert _found(subject) == [(code, settings)]


def _both_fields(t: Trace) -> None:
    wrong = [t.tensor("bs draft_hidden", "target") for _ in range(2)]
    Worker(t.dims).step(State(*wrong), t.tensor("bs"))


def _in_a_loop(t: Trace) -> None:
    for width in ("draft_hidden", "draft_vocab"):
        t.tensor(f"bs {width}") + t.tensor(f"bs {width.replace('draft', 'target')}")


def test_two_bugs_of_one_line_are_two_findings() -> None:
    assert len(_found(_in_a_loop)) == 2


def test_a_bug_that_is_a_consequence_of_another_run_is_told_once() -> None:
    report = sweep(_both_fields)
    messages = [one.message for one in (*report.findings, *report.consequences)]
    assert len(messages) == len({one.partition(":")[0] for one in messages})


RAGGED: dict[str, Subject] = {
    "parts of so many": lambda t: t.tensor("tokens topk").split(
        t.tensor("bs", torch.int64).tolist()
    ),
    "the request of each": lambda t: t.tensor("bs topk").index_select(
        0,
        torch.searchsorted(
            t.tensor("bs", torch.int64).cumsum(0), torch.arange(t.size("tokens")), right=True
        ).clamp(max=t.size("bs") - 1),
    ),
}


def test_a_batch_of_no_requests_has_no_tokens() -> None:
    no_requests = next(run for run in STANDARD if run.hints.get("bs") == 0)
    for subject in RAGGED.values():
        report = sweep(subject, runs=[no_requests])
        assert (report.findings, report.stopped) == ((), None)


def test_one_run_says_nothing_of_settings() -> None:
    report = sweep(ONE["two widths"][0], runs=[Run()])
    assert {note.label for note in report.findings[0].notes}.isdisjoint({"found with"})
