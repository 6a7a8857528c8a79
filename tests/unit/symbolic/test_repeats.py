"""Operators that run again: the result of the first time, and every question at its own site."""

from __future__ import annotations

import torch

from shapecheck.symbolic import trace
from shapecheck.symbolic.repeats import Repeats


def test_a_second_site_has_its_own_finding():
    with trace() as t:
        left, right = t.tensor("bs draft_hidden"), t.tensor("bs target_hidden")
        torch.cat([left, right])
        torch.cat([t.tensor("bs draft_hidden"), t.tensor("bs target_hidden")])
    report = t.report()
    assert [item.code for item in report.findings] == ["SHP301", "SHP301"]
    assert len({item.primary.line for item in report.findings}) == 2


def test_a_repeated_result_has_the_names_and_strides_of_the_first():
    with trace() as t:
        rows = t.tensor("bs topk draft_hidden")
        shapes = [
            (t.shape(made), made.stride() == first.stride(), made.dtype)
            for first in [rows.transpose(0, 1)]
            for made in (rows.transpose(0, 1), rows.transpose(0, 1))
        ]
    assert shapes == [("[topk, bs, draft_hidden]", True, torch.float32)] * 2


def test_a_repeated_view_shares_the_memory_of_its_own_operand():
    with trace() as t:
        first, second = (t.tensor("bs topk", torch.int64) for _ in range(2))
        t.ids(first, "draft_vocab")
        t.ids(second, "target_vocab")
        table = t.tensor("draft_vocab draft_hidden")
        for ids in (first.view(-1), second.view(-1)):
            table[ids]
    assert [item.code for item in t.report().findings] == ["SHP305"]


def test_an_operator_in_place_gives_its_own_operand_back():
    with trace() as t:
        first, second = t.tensor("bs topk"), t.tensor("bs topk")
        assert first.add_(1.0) is first
        assert second.add_(1.0) is second


def test_an_operator_on_the_same_shapes_is_worked_out_once(monkeypatch):
    kept: list[object] = []
    keep = Repeats._keep

    def counted(self, key, *rest):
        kept.append(key)
        keep(self, key, *rest)

    monkeypatch.setattr(Repeats, "_keep", counted)
    with trace() as t:
        for _ in range(3):
            t.tensor("bs draft_hidden").softmax(dim=1)
    softmax = [key for key in kept if "softmax" in str(key)]
    assert len(softmax) == 1


def test_sizes_that_depend_on_data_are_always_asked_for():
    with trace() as t:
        mask = t.tensor("bs", torch.bool)
        first, second = mask.nonzero(), mask.nonzero()
    assert first.shape[0] is not second.shape[0]
