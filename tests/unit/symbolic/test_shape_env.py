"""The private surface of torch: present here, and named clearly when a torch moves it."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from shapecheck.errors import ShapecheckError
from shapecheck.symbolic import trace
from shapecheck.symbolic.shape_env import check_surface, is_composite


def test_this_torch_has_what_tracing_needs():
    check_surface()


def test_a_moved_method_is_named(monkeypatch):
    monkeypatch.delattr(ShapeEnv, "create_unbacked_symbool")
    with pytest.raises(ShapecheckError, match=r"lacks ShapeEnv\.create_unbacked_symbool.*install"):
        check_surface()


def test_a_renamed_parameter_is_named(monkeypatch):
    monkeypatch.setattr(ShapeEnv, "evaluate_expr", lambda self, expression: expression)
    with pytest.raises(ShapecheckError, match=r"ShapeEnv\.evaluate_expr\(fallback_value=\)"):
        check_surface()


def test_an_equality_leaves_no_trace_in_the_next_answer():
    with trace() as t:
        wide, narrow = t.tensor("bs target_hidden"), t.tensor("bs draft_hidden")
        first, second = wide + narrow, wide + narrow
    assert first.shape == second.shape
    assert [finding.primary.line for finding in t.report().findings] == [
        test_an_equality_leaves_no_trace_in_the_next_answer.__code__.co_firstlineno + 3
    ]


def test_symbols_of_one_number_stay_apart():
    with trace() as t:
        target, draft = t.size("target_hidden"), t.size("draft_hidden")
        assert int(target) == int(draft)
        assert target.node.expr != draft.node.expr


def test_sizes_of_zero_and_one_are_plain_numbers():
    with trace(hints={"bs": 0, "topk": 1}) as t:
        assert type(t.size("bs")) is int
        assert type(t.size("topk")) is int


def test_composites_are_taken_apart_and_kernels_are_not():
    assert is_composite(torch.ops.aten.linear.default)
    assert not is_composite(torch.ops.aten.native_layer_norm.default)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_findings_do_not_depend_on_autograd(mode):
    with trace() as t, mode():
        layer = torch.nn.Linear(t.size("target_hidden"), 7)
        layer(t.tensor("bs draft_hidden"))
    assert [finding.dims.found for finding in t.report().findings] == ["target_hidden"]
