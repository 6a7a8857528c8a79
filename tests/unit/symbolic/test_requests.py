"""Requests that are mixed with one another, in ways that fit whatever the sizes are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from shapecheck.symbolic import Trace, trace

Run = Callable[[Trace], object]


def _codes(run: Run) -> list[str]:
    with trace() as t:
        run(t)
    return [finding.code for finding in t.report().findings]


def _normalised(t: Trace, axis: int) -> object:
    law = t.tensor("bs target_vocab")
    return law / law.sum(dim=axis, keepdim=True)


def _left(t: Trace, axis: int) -> object:
    """Whole counts of a law over their sum, where there is one."""
    counts = t.tensor("bs target_vocab", torch.int64)
    mass = counts.sum(dim=axis, keepdim=True)
    return torch.where(mass == 0, 1.0, counts.double() / mass)


def _guarded(t: Trace, axis: int) -> object:
    law = t.tensor("bs*topk target_vocab")
    nothing = law.amax(dim=axis, keepdim=True) == 0
    return torch.where(nothing, 0.0, law)


def _centred(t: Trace) -> object:
    hidden = t.tensor("bs target_hidden")
    return hidden - hidden.mean(0)


MIXED: dict[str, Run] = {
    "a mean whose axis is gone": _centred,
    "a sum spread over the rows": lambda t: _normalised(t, 0),
    "a sum of whole numbers": lambda t: _left(t, 0),
    "a condition about all rows": lambda t: _guarded(t, 0),
    "a softmax over the rows": lambda t: t.tensor("bs target_vocab").softmax(0),
    "a running product over the rows": lambda t: t.tensor("bs topk").cumprod(dim=0),
}


def _longest(t: Trace) -> object:
    """How far each row is from the longest of all."""
    lens = t.tensor("bs topk", torch.int64)
    longest = lens.amax(0, keepdim=True)
    return torch.where(lens < longest, lens, longest) - longest


def _slots_of_experts(t: Trace) -> object:
    """Where each token goes when those of one expert lie side by side."""
    chosen = t.tensor("bs num_aux", torch.int64)
    counts = chosen.sum(0, keepdim=True)
    return ((chosen.cumsum(0) - 1 + counts.cumsum(1) - counts) * chosen).sum(1)


def _pages(t: Trace) -> object:
    pages = t.tensor("bs topk", torch.int64)
    return pages // (pages.sum(0, keepdim=True) + 1)


def _columns(t: Trace) -> object:
    """The columns that any request uses."""
    used = t.tensor("bs topk", torch.bool)
    return used | ~used.any(dim=0, keepdim=True)


def _left_pad(t: Trace) -> object:
    lengths = t.tensor("bs", torch.int64)
    return lengths.max(0, keepdim=True).values - lengths


def _scaled(t: Trace) -> object:
    hidden = t.tensor("bs target_hidden")
    return hidden / hidden.abs().amax((0, 1), keepdim=True)


def _share(t: Trace) -> object:
    weights = t.tensor("bs")
    return weights / weights.sum(0, keepdim=True)


def _pairs(t: Trace) -> object:
    pairs = t.tensor("bs bs")
    return pairs / pairs.sum(0, keepdim=True)


APART: dict[str, Run] = {
    "a sum of each row": lambda t: _normalised(t, 1),
    "a sum of whole numbers of each row": lambda t: _left(t, 1),
    "columns that any row uses": _columns,
    "whole numbers against the largest": _longest,
    "slots of experts side by side": _slots_of_experts,
    "a quotient of whole numbers": _pages,
    "a condition about each row": lambda t: _guarded(t, -1),
    "a softmax of each row": lambda t: t.tensor("bs target_vocab").softmax(-1),
    "offsets of ragged rows": lambda t: t.tensor("bs", torch.int64).cumsum(0),
    "a sum of all rows that stays one": lambda t: t.tensor("bs topk").sum(0, keepdim=True) + 1,
    "offsets of two lists": lambda t: torch.stack(
        [t.tensor("bs", torch.int64), t.tensor("bs", torch.int64)]
    ).cumsum(1),
    "offsets of one list with an axis before": lambda t: t.tensor("bs", torch.int64)[None].cumsum(
        -1
    ),
    "slots of experts": lambda t: torch.nn.functional.one_hot(
        t.tensor("bs*topk", torch.int64), 8
    ).cumsum(0),
    "a quantile of rows": lambda t: t.tensor("bs topk").sort(0).values.median(),
    "a pad on the left": _left_pad,
    "a mean over requests for other rows": lambda t: (
        t.tensor("num_aux target_hidden") - t.tensor("bs target_hidden").mean(0)
    ),
    "one scale for the tensor": _scaled,
    "a share of all": _share,
    "rows against rows": _pairs,
    "a number without axes": lambda t: torch.full((), 3.0).sum(0, keepdim=True),
    "a mean over steps": lambda t: (
        t.tensor("num_steps topk") - t.tensor("num_steps topk").mean(0, keepdim=True)
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_requests_that_are_mixed_are_found(name: str) -> None:
    assert _codes(MIXED[name]) == ["SHP303"]


@pytest.mark.parametrize("name", APART)
def test_requests_that_stay_apart_are_clean(name: str) -> None:
    assert _codes(APART[name]) == []
