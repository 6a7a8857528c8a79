"""dtype owners: written casts are decisions, silent ones are findings."""

from __future__ import annotations

import pytest
import torch

from shapecheck.symbolic import trace


@pytest.fixture
def t():
    with trace() as running:
        yield running


def codes(t) -> list[str]:
    return [finding.code for finding in t.report().findings]


def test_the_two_models_never_share_a_dtype(t):
    assert t.dtype("target") != t.dtype("draft")


@pytest.mark.parametrize(
    "use",
    [
        lambda a, b: a + b,
        lambda a, b: a.mul_(b),
        lambda a, b: a.copy_(b),
        lambda a, b: a.__setitem__(slice(0, 2), b[:2]),
        lambda a, b: a.index_put_((torch.zeros((3,), dtype=torch.int64),), b[:3]),
        lambda a, b: torch.cat([a, b]),
        lambda a, b: torch.where(a > 0, a, b),
    ],
)
def test_silent_casts_between_owners_are_found(t, use):
    use(t.tensor("bs target_hidden", "target"), t.tensor("bs target_hidden", "draft"))
    assert "SHP304" in codes(t)


@pytest.mark.parametrize(
    "use",
    [
        lambda a, b: a + b.to(a.dtype),
        lambda a, b: a.copy_(b.to(a)),
        lambda a, b: a.float() + b.float(),
        lambda a, b: torch.cat([a, b.type_as(a)]),
        lambda a, b: a * torch.tensor(2.0),
        lambda a, b: a + torch.ones(()).to(b.dtype),
    ],
)
def test_written_casts_and_scalars_are_not(t, use):
    use(t.tensor("bs target_hidden", "target"), t.tensor("bs target_hidden", "draft"))
    assert codes(t) == []


def test_cat_of_two_ranks_is_found(t):
    torch.cat([torch.empty((0,)), t.tensor("bs target_hidden")])
    assert codes(t) == ["SHP203"]


def test_cat_of_two_integer_widths_is_found(t):
    torch.cat([t.tensor("bs", torch.int32), t.tensor("bs", torch.int64)])
    assert codes(t) == ["SHP203"]


def test_an_empty_literal_means_nothing_yet(t):
    torch.cat([torch.tensor([]), t.tensor("bs target_hidden")])
    assert codes(t) == []


def test_a_later_operation_on_the_result_is_a_consequence(t):
    a, b = t.tensor("bs target_hidden", "target"), t.tensor("bs target_hidden", "draft")
    a.copy_(b)
    a.add_(b)
    report = t.report()
    assert [finding.code for finding in report.findings] == ["SHP304"]
    assert [finding.code for finding in report.consequences] == ["SHP304"]


@pytest.mark.parametrize(
    "use",
    [
        lambda narrow, wide: (narrow * wide) + narrow,
        lambda narrow, wide: (narrow - wide).unsqueeze(0).sum(),
        lambda narrow, wide: torch.where(narrow > 0, narrow, wide).argmax(),
        lambda narrow, wide: narrow.mul(wide).matmul(wide.T),
        lambda narrow, wide: (wide / narrow) + wide,
    ],
)
def test_a_float_that_is_widened_in_silence_and_computed_on_with_is_found(t, use):
    use(t.tensor("bs draft_hidden", "draft"), t.tensor("bs draft_hidden"))
    assert codes(t) == ["SHP304"]


@pytest.mark.parametrize(
    "use",
    [
        lambda narrow, wide: (narrow * wide).to(narrow.dtype) + narrow,
        lambda narrow, wide: (narrow * wide).view(-1).to(narrow.dtype),
        lambda narrow, wide: narrow.float() * wide + wide,
        lambda narrow, wide: wide * (narrow > 0) + wide,
        lambda narrow, wide: (narrow > wide).sum(),
        lambda narrow, wide: wide / torch.arange(3)[:1] + wide,
        lambda narrow, wide: torch.nn.functional.layer_norm(wide, wide.shape[1:]) + wide,
    ],
)
def test_a_widened_float_that_is_cast_at_once_and_counts_beside_floats_are_meant(t, use):
    use(t.tensor("bs draft_hidden", "draft"), t.tensor("bs draft_hidden"))
    assert codes(t) == []


def test_what_a_composite_widens_inside_is_its_own_affair(t):
    heads = t.tensor("bs draft_heads tokens draft_head_dim", "draft")
    mask = t.tensor("tokens tokens", "draft")
    attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, mask)
    attended + heads
    assert codes(t) == []
