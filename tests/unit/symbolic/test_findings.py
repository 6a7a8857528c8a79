"""Roots, consequences, comparisons and notes: what a person is told first."""

from __future__ import annotations

import pytest
import torch

from shapecheck.diagnostics import Certainty, Severity
from shapecheck.symbolic import trace
from shapecheck.symbolic.sweep import STANDARD, Run, sweep


@pytest.fixture
def t():
    with trace() as running:
        yield running


def test_what_follows_from_a_finding_is_shown_after_it(t):
    wrong = t.tensor("bs draft_hidden") + t.tensor("bs target_hidden")
    wrong + t.tensor("bs draft_hidden") + t.tensor("bs target_hidden")
    report = t.report()
    assert len(report.findings) == 1
    assert len(report.consequences) >= 1


def test_another_mistake_on_a_marked_tensor_is_a_root(t):
    wrong = t.tensor("bs draft_hidden") + t.tensor("bs target_hidden")
    wrong + t.tensor("topk target_hidden")
    assert [finding.code for finding in t.report().findings] == ["SHP301", "SHP303"]


def test_one_cause_at_several_lines_is_one_root(t):
    wide, narrow = t.tensor("bs target_hidden"), t.tensor("bs draft_hidden")
    wide + narrow
    wide * narrow
    report = t.report()
    assert (len(report.findings), len(report.consequences)) == (1, 1)


def test_sizes_of_one_model_may_be_equal():
    with trace(hints={"target_kv_heads": 8}) as t:
        t.tensor("bs target_heads") + t.tensor("bs target_kv_heads")
    report = t.report()
    assert report.findings == ()
    assert "target_heads == target_kv_heads" in report.notes[0]


def test_rows_of_two_kinds_may_not(t):
    t.tensor("topk target_hidden") + t.tensor("num_draft_tokens target_hidden")
    assert [finding.code for finding in t.report().findings] == ["SHP303"]


def test_a_plain_branch_on_two_owners_is_listed_and_the_general_arm_traced(t):
    arms = []
    if t.size("target_hidden") == t.size("draft_hidden"):
        arms.append("equal")
    if t.size("target_hidden") != t.size("draft_hidden"):
        arms.append("unequal")
    assert arms == ["unequal"]
    report = t.report()
    assert report.findings == ()
    assert [item.severity for item in report.comparisons] == [Severity.NOTE, Severity.NOTE]


def test_a_demand_is_a_warning(t):
    assert t.size("target_hidden") == t.size("draft_hidden")
    (finding,) = t.report().findings
    assert (finding.severity, finding.certainty) == (Severity.WARNING, Certainty.MAY)


def test_a_guarded_copy_is_one_finding(t):
    into, values = t.tensor("bs draft_hidden"), t.tensor("bs target_hidden")
    if into.shape == values.shape:
        into.copy_(values)
    assert [finding.code for finding in t.report().findings] == ["SHP402"]
    assert [finding.code for finding in t.report().consequences] == ["SHP301"]


def test_a_slice_relies_on_its_capacity(t):
    t.tensor("padded_bs target_hidden")[: t.size("bs")].copy_(t.tensor("bs target_hidden"))
    (relation,) = t.report().capacity
    assert (relation.code, relation.dims.found, relation.dims.expected) == (
        "SHP401",
        "bs",
        "padded_bs",
    )
    assert relation.severity is Severity.NOTE


def test_a_slice_by_the_other_model_weighs_more(t):
    t.tensor("bs target_hidden")[:, : t.size("draft_hidden")].contiguous()
    assert t.report().capacity[0].severity is Severity.WARNING
    assert t.report().findings == ()


def test_a_refused_operation_is_a_finding_in_names():
    with trace(setting="draft wider") as t:
        t.run(lambda: t.tensor("bs target_hidden") @ t.tensor("draft_hidden topk"))
    (finding,) = t.report().findings
    assert finding.code == "SHP301"
    assert {finding.dims.expected, finding.dims.found} == {"target_hidden", "draft_hidden"}
    assert "(refused: the numbers differ)" in finding.message


def test_what_sympy_decides_alone_is_refused_too(t):
    t.run(lambda: t.tensor("bs 3*target_hidden") + t.tensor("bs target_hidden"))
    (finding,) = t.report().findings
    assert "3*target_hidden" in finding.message


def test_a_refusal_without_dimensions_is_no_finding(t):
    t.run(lambda: torch.zeros((2, 3)) + torch.zeros((2, 4)))
    assert t.report().findings == ()
    assert t.report().exit_code == 2


def test_a_sweep_reports_each_finding_once():
    def subject(t):
        t.tensor("bs draft_hidden") + t.tensor("bs target_hidden")

    report = sweep(subject)
    assert len(report.findings) == 1
    assert len(report.settings) == len(STANDARD)
    assert report.stopped.startswith("draft wider | target wider: RuntimeError")


def test_a_sweep_finds_what_only_no_rows_show():
    def subject(t):
        t.tensor("bs target_heads target_head_dim").reshape(t.size("bs"), -1)

    assert sweep(subject, runs=(Run(),)).findings == ()
    assert [finding.code for finding in sweep(subject).findings] == ["SHP203"]


def test_a_sweep_takes_what_is_allowed():
    def subject(t):
        t.tensor("bs draft_vocab") + t.tensor("bs target_vocab")

    equal = (Run(),)
    assert len(sweep(subject, runs=equal).findings) == 1
    report = sweep(subject, runs=equal, allow={"target_vocab == draft_vocab": "one tokenizer"})
    assert report.exit_code == 0
