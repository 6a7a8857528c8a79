"""A shape that is read beyond its rank ends the traced code, and is a finding with its origin."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor, nn

from shapecheck import contract
from shapecheck.symbolic import Trace, trace


class _Layer(nn.Module):
    def __init__(self, t: Trace) -> None:
        super().__init__()
        self.weight = nn.Parameter(t.tensor("draft_hidden"), requires_grad=False)


def _read_of_a_parameter(t: Trace) -> int:
    layer = _Layer(t)
    return layer.weight.shape[1]


def _unpacked(t: Trace) -> int:
    cube = t.tensor("bs topk draft_hidden")
    rows, width = cube.shape
    return rows * width


def _read_from_the_end(t: Trace) -> int:
    lens = t.tensor("bs", torch.int64)
    return lens.shape[-2]


@contract
def _width(lens: Int64[Tensor, "bs"], slots: Int64[Tensor, "bs"]) -> int:
    rows, width = slots.shape
    return rows * width


def _unpacked_below_a_contract(t: Trace) -> int:
    """The frames of the check stand between those of the traced code."""
    return _width(t.tensor("bs", torch.int64), t.tensor("bs", torch.int64))


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (_read_of_a_parameter, "layer.weight is [draft_hidden], and axis 1 is read"),
        (_unpacked, "cube is [bs, topk, draft_hidden], and 2 axes are unpacked"),
        (_unpacked_below_a_contract, "slots is [bs], and 2 axes are unpacked"),
        (_read_from_the_end, "lens is [bs], and axis 1 is read"),
    ],
)
def test_an_axis_that_is_not_there_is_a_finding(run, says):
    with trace() as t:
        t.run(run, t)
    report = t.report()
    assert [(item.code, says in item.message) for item in report.findings] == [("SHP203", True)]
    assert report.exit_code == 1
    assert any(note.message == "made here" for note in report.findings[0].notes)


def test_an_index_error_of_something_else_is_no_finding():
    def run(t: Trace) -> int:
        rows = t.tensor("bs draft_hidden")
        return [rows.shape[0]][1]

    with trace() as t:
        t.run(run, t)
    assert t.report().findings == ()
    assert t.report().exit_code == 2


def test_a_division_by_the_rows_of_an_idle_batch_is_a_finding():
    def run(t: Trace) -> int:
        rows = t.tensor("bs topk")
        return 12 // len(rows)

    with trace(hints={"bs": 0}) as t:
        t.run(run, t)
    assert [item.code for item in t.report().findings] == ["SHP203"]
