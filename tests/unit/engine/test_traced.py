"""The engine under trace: no size of one model stands in for the other's, in any phase."""

from __future__ import annotations

import pytest

from .traced import ALLOWED, Case, findings_of, report_of

# Small equal numbers: loops over branches and nodes are unrolled.
_SMALL = {"bs": 3, "topk": 3, "num_draft_tokens": 3}
# A chain of three nodes.
_SHORT = {"bs": 3, "num_steps": 2, "num_draft_tokens": 3}
_GRAPHS = {"padded_bs": 6}
CASES = (
    Case(algorithm="none"),
    Case(algorithm="ngram", penalties=True),
    Case(algorithm="standalone", drafting="drawn", graphs=True, hints={**_SHORT, **_GRAPHS}),
    Case(algorithm="eagle", topk=2),
    Case(algorithm="eagle3", topk=2, graphs=True, hints=_GRAPHS),
    Case(algorithm="eagle3", topk=2, drafting="drawn", hints=_SMALL),
    Case(algorithm="eagle3", drafting="drawn", hints=_SHORT),
    Case(algorithm="eagle3", topk=2, hints={**_SMALL, "bs": 0}),
    Case(algorithm="eagle3", topk=2, hints={**_SMALL, "bs": 1}),
    Case(algorithm="eagle3", topk=2, setting="draft wider"),
    Case(algorithm="eagle3", topk=2, setting="target wider"),
    Case(algorithm="standalone", hints={"bs": 0}),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_phases_need_no_equality_but_those_allowed(case: Case) -> None:
    """Prefill, extend, decode, verify, commit, merge, filter and idle, with no weights."""
    assert findings_of([case]) == []


def test_every_equality_that_is_allowed_has_a_reason() -> None:
    report = report_of(Case(algorithm="none"))
    assert [item.text for item in report.allowed] == list(ALLOWED["none"])
    assert all(item.reason for item in report.allowed)
    assert report.checked_operations > 0
