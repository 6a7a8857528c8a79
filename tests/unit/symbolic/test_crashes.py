"""A traced run that ends in an error of torch: a finding where owners meet, else an honest stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from shapecheck.symbolic import Report, Trace, trace


def _fold(t: Trace) -> object:
    rows = t.tensor("bs*topk draft_hidden")
    return rows.view(t.size("bs"), t.size("topk"), t.size("target_hidden"))


def _split(t: Trace) -> object:
    return t.tensor("bs draft_hidden").split([t.size("target_hidden"), 0], dim=1)


def _expand(t: Trace) -> object:
    return t.tensor("bs draft_hidden").expand(t.size("bs"), t.size("target_hidden"))


def _join(t: Trace) -> object:
    return torch.cat([t.tensor("bs draft_hidden"), t.tensor("bs target_hidden")])


def _norm(t: Trace) -> object:
    return functional.layer_norm(t.tensor("bs draft_hidden"), [t.size("target_hidden")])


def _attend(t: Trace) -> object:
    query = t.tensor("bs draft_heads tokens draft_head_dim")
    keys = t.tensor("bs target_heads tokens draft_head_dim")
    return functional.scaled_dot_product_attention(query, keys, keys)


def _multiply(t: Trace) -> object:
    return functional.linear(
        t.tensor("bs draft_hidden", "draft"), t.tensor("draft_ffn draft_hidden", "target")
    )


def _crashed(run: Callable[[Trace], object]) -> Report:
    with trace(setting="draft wider") as t:
        t.run(run, t)
    return t.report()


@pytest.mark.parametrize("run", [_fold, _split, _expand, _join, _norm, _attend])
def test_a_refused_shape_names_its_owners_and_the_operation(run: Callable[[Trace], object]) -> None:
    report = _crashed(run)
    assert report.stopped is not None
    (finding,) = report.findings
    assert finding.code == "SHP301"
    assert "refused" in finding.message
    labels = {note.label for note in finding.notes}
    assert any(label.startswith("draft_") for label in labels)
    assert any(label.startswith("target_") for label in labels)
    assert finding.primary is not None
    assert finding.primary.path.endswith("test_crashes.py")
    assert report.exit_code == 1
    assert "; stopped: " in report.text()


def test_a_refused_dtype_is_the_meeting_of_two_dtypes() -> None:
    report = _crashed(_multiply)
    assert [finding.code for finding in report.findings] == ["SHP304"]
    assert report.exit_code == 1


def _plain(t: Trace) -> object:
    t.tensor("bs draft_hidden") + t.tensor("bs draft_hidden")
    return torch.zeros(3) + torch.zeros(4)


def _unpack(t: Trace) -> object:
    t.tensor("bs draft_hidden") + t.tensor("bs draft_hidden")
    first, second, third = t.tensor("bs draft_hidden").shape
    return first, second, third


@pytest.mark.parametrize("run", [_plain, _unpack])
def test_a_crash_without_owners_says_where_and_what_was_checked(
    run: Callable[[Trace], object],
) -> None:
    report = _crashed(run)
    assert report.findings == ()
    assert report.exit_code == 2
    assert f"in {run.__name__}" in (report.stopped or "")
    assert "test_crashes.py:" in (report.stopped or "")
    assert "1 operations and 0 tensors at contracts checked; stopped: " in report.text()
