"""Sizes that fake kernels do not compare: the trace asks in their place."""

from __future__ import annotations

import pytest
import torch

from shapecheck.symbolic import trace

EQUAL = [
    lambda t, rows: t.tensor("bs target_hidden").index_put_((rows,), t.tensor("bs draft_hidden")),
    lambda t, rows: t.tensor("bs target_hidden").__setitem__(rows, t.tensor("bs draft_hidden")),
    lambda t, rows: t.tensor("bs target_hidden").__setitem__(
        (slice(None), rows), t.tensor("topk bs")
    ),
]


@pytest.mark.parametrize("write", EQUAL)
def test_an_indexed_write_compares_its_values(write):
    with trace() as t:
        write(t, t.tensor("bs", torch.int64))
    assert len(t.report().findings) == 1


def test_a_scalar_or_one_row_broadcasts():
    with trace() as t:
        into, rows = t.tensor("bs target_hidden"), t.tensor("bs", torch.int64)
        into[rows] = 0.0
        into[rows] = t.tensor("target_hidden")
        into[rows] = t.tensor("1 target_hidden")
    assert t.report().findings == ()


def test_a_mask_writes_as_many_rows_as_the_data_says():
    with trace() as t:
        into = t.tensor("bs target_hidden")
        into[t.tensor("bs", torch.bool)] = 0.0
    assert t.report().findings == ()


@pytest.mark.parametrize("setting", ["draft wider", "target wider"])
def test_a_write_that_does_not_fit_is_refused(setting):
    with trace(setting=setting) as t:
        t.run(lambda: EQUAL[0](t, t.tensor("bs", torch.int64)))
    report = t.report()
    assert [finding.code for finding in report.findings] == ["SHP301"]
    assert report.stopped is not None


def test_gather_relies_on_its_rows():
    with trace() as t:
        t.tensor("bs target_hidden").gather(1, t.tensor("topk num_steps", torch.int64))
    assert [item.dims.found for item in t.report().capacity] == ["topk"]


def test_scatter_relies_on_its_rows():
    with trace() as t:
        index = t.tensor("topk num_steps", torch.int64)
        t.tensor("bs target_hidden").scatter_(1, index, t.tensor("topk num_steps"))
    assert ("topk", "bs") in {(item.dims.found, item.dims.expected) for item in t.report().capacity}


def _scattered(t, index):
    counts = t.tensor("bs topk target_vocab", torch.int32)
    return counts.scatter_add_(2, index, t.tensor("bs topk num_steps", torch.int32))


def test_an_index_that_is_not_broadcast_leaves_values_out():
    with trace() as t:
        _scattered(t, t.tensor("bs 1 num_steps", torch.int64))
    assert [finding.code for finding in t.report().findings] == ["SHP303"]


def test_an_index_that_is_expanded_covers_all_values():
    with trace() as t:
        sizes = (t.size("bs"), t.size("topk"), t.size("num_steps"))
        _scattered(t, t.tensor("bs 1 num_steps", torch.int64).expand(sizes))
    assert t.report().findings == ()
