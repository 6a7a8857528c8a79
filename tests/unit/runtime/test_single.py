"""`check_shape`: a weight is held to the axes that its owner names."""

from __future__ import annotations

import pytest
import torch

from shapecheck import ShapecheckError, ShapeContractError, check_shape
from shapecheck.symbolic import trace

from .conftest import pair_dims

DIMS = pair_dims(target=16, draft=8)


def test_axes_and_formulas_hold() -> None:
    check_shape(torch.zeros(100, 8), "draft_vocab draft_hidden", DIMS, name="lm_head")
    check_shape(torch.zeros(8, 32), "draft_hidden topk*target_hidden", DIMS, name="fc")


@pytest.mark.parametrize("level_name", ["off", "strict"])
def test_another_width_or_rank_is_refused_at_every_level(level, level_name: str) -> None:
    level(level_name)
    with pytest.raises(
        ShapeContractError, match=r"(?s)SHP201 check_shape, fc\.weight.*dim 1"
    ) as wide:
        check_shape(torch.zeros(8, 16), "draft_hidden draft_hidden", DIMS, name="fc.weight")
    assert "target_hidden" in str(wide.value)
    with pytest.raises(ShapeContractError, match="SHP201"):
        check_shape(torch.zeros(8), "draft_hidden target_hidden", DIMS, name="layers.{0}.weight")


def test_without_dims_there_is_nothing_to_hold_it_to() -> None:
    with pytest.raises(ShapecheckError, match="pass the Dims of the engine"):
        check_shape(torch.zeros(8), "draft_hidden", None, name="fc")  # type: ignore[arg-type]


def test_in_a_trace_it_is_a_finding_though_the_numbers_agree() -> None:
    with trace() as t:
        check_shape(t.tensor("draft_hidden"), "target_hidden", t.dims, name="norm")
    assert [item.code for item in t.report().findings] == ["SHP201"]
