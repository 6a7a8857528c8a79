"""Reshapes: axes that lie side by side may be merged and split, not taken in another order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from shapecheck.symbolic import Trace, trace

Run = Callable[[Trace], object]


def _codes(run: Run, **hints: int) -> list[str]:
    with trace(hints=hints) as t:
        run(t)
    return [finding.code for finding in t.report().findings]


def _attended(t: Trace, *, swapped: bool) -> object:
    """Heads before rows, as attention has them, and back to rows of tokens."""
    mixed = t.tensor("bs target_heads num_draft_tokens target_head_dim")
    mixed = mixed.transpose(1, 2) if swapped else mixed
    return mixed.reshape(
        t.size("bs*num_draft_tokens"), t.size("target_heads"), t.size("target_head_dim")
    )


def _stacked(t: Trace, shape: str, count: str, axis: int = 0) -> torch.Tensor:
    """One tensor for each turn of a loop."""
    return torch.stack([t.tensor(shape) for _ in range(t.size(count))], axis)


TORN: dict[str, Run] = {
    "heads and rows": lambda t: _attended(t, swapped=False),
    "two axes": lambda t: t.tensor("bs topk").view(t.size("topk"), t.size("bs")),
    "in the middle of others": lambda t: t.tensor("bs topk num_steps draft_hidden").reshape(
        t.size("bs"), t.size("num_steps"), t.size("topk"), -1
    ),
    "steps of a loop": lambda t: _stacked(t, "bs topk", "num_steps").view(
        t.size("bs"), t.size("num_steps"), t.size("topk")
    ),
    "steps of a loop, side by side": lambda t: _stacked(t, "bs topk", "num_steps").view(
        t.size("bs"), t.size("num_steps*topk")
    ),
    "layers of a loop": lambda t: _stacked(t, "tokens target_hidden", "num_aux").view(
        -1, t.size("num_aux*target_hidden")
    ),
    "beside a number": lambda t: t.tensor("bs 4 topk").view(t.size("bs*topk"), 4),
}

WHOLE: dict[str, Run] = {
    "steps of a loop behind the rows": lambda t: _stacked(t, "bs topk", "num_steps", axis=1).view(
        t.size("bs"), t.size("num_steps*topk")
    ),
    "steps of a loop in their order": lambda t: _stacked(t, "bs topk", "num_steps").view(
        t.size("num_steps"), t.size("bs*topk")
    ),
    "layers of a loop behind the rows": lambda t: _stacked(
        t, "tokens target_hidden", "num_aux", axis=1
    ).view(-1, t.size("num_aux*target_hidden")),
    "permuted first": lambda t: _attended(t, swapped=True),
    "merged": lambda t: t.tensor("bs topk draft_hidden").flatten(0, 1),
    "split": lambda t: t.tensor("bs*topk draft_hidden").view(
        t.size("bs"), t.size("topk"), t.size("draft_hidden")
    ),
    "merged and split": lambda t: t.tensor("bs topk target_heads*target_head_dim").view(
        t.size("bs*topk"), t.size("target_heads"), t.size("target_head_dim")
    ),
    "rows that were all counted": lambda t: _counted(t).reshape(
        t.size("bs"), t.size("topk") * t.size("topk")
    ),
    "one axis of one place": lambda t: t.tensor("bs 1 topk").view(1, t.size("bs"), t.size("topk")),
    "halves of a width": lambda t: t.tensor("tokens 2").view(2, t.size("tokens")),
    "pages": lambda t: t.tensor("bs*topk num_steps").view(t.size("bs"), t.size("topk*num_steps")),
    "bytes": lambda t: t.tensor("bs topk").view(torch.int32),
    "pairs of a width": lambda t: t.tensor("tokens target_heads target_head_dim").reshape(
        t.size("tokens"), t.size("target_heads"), -1, 2
    ),
    "pairs of everything": lambda t: t.tensor("tokens target_hidden").reshape(-1, 2),
    "all in one": lambda t: t.tensor("bs topk").view(-1),
    "one place each": lambda t: (
        t.tensor("bs topk").unsqueeze(1).view(t.size("bs"), t.size("topk"), 1)
    ),
}


def _counted(t: Trace) -> torch.Tensor:
    """Rows for each branch of each request, of a batch that loops have counted."""
    for name in ("bs", "topk"):
        assert list(range(t.size(name)))
    rows = torch.arange(0, t.size("bs*topk"), t.size("topk"))[:, None] + torch.arange(
        t.size("topk")
    )
    return t.tensor("bs*topk topk")[rows.flatten()]


# Where two numbers are equal torch takes the axes as they were.
@pytest.mark.parametrize("hints", [{}, {"bs": 7}], ids=str)
@pytest.mark.parametrize("name", TORN)
def test_axes_in_another_order_are_found(name: str, hints: dict[str, int]) -> None:
    assert _codes(TORN[name], **hints) == ["SHP303"]


@pytest.mark.parametrize("hints", [{}, {"bs": 7}], ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_axes_that_lie_side_by_side_are_clean(name: str, hints: dict[str, int]) -> None:
    assert _codes(WHOLE[name], **hints) == []


def _heads(t: Trace, heads: str) -> torch.Tensor:
    """Heads of a width that is computed from both numbers, as most models do."""
    hidden = t.tensor("tokens target_hidden")
    return hidden.view(-1, t.size(heads), hidden.shape[-1] // t.size(heads))


def test_a_width_that_is_divided_by_heads_meets_these_alone() -> None:
    assert _codes(lambda t: _heads(t, "target_heads").flatten(1)) == []
    assert _codes(lambda t: _heads(t, "draft_heads")) == ["SHP301"]


QUOTIENTS: dict[str, Run] = {
    "halves": lambda t: t.tensor("tokens target_hidden").view(-1, t.size("target_hidden") // 2, 2),
    "groups of heads": lambda t: t.tensor("tokens target_heads target_head_dim").view(
        -1,
        t.size("target_kv_heads"),
        t.size("target_heads") // t.size("target_kv_heads"),
        t.size("target_head_dim"),
    ),
    "rows beside them": lambda t: t.tensor("bs topk target_hidden").view(
        -1,
        t.size("topk"),
        t.size("target_heads"),
        t.size("target_hidden") // t.size("target_heads"),
    ),
    "heads that follow": lambda t: t.tensor("bs topk target_hidden").view(
        t.size("bs"), t.size("topk"), -1, t.size("target_hidden") // t.size("target_heads")
    ),
}


@pytest.mark.parametrize("setting", ["equal", "draft wider", "target wider"])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_of_one_model_are_clean(name: str, setting: str) -> None:
    with trace(setting=setting) as t:
        QUOTIENTS[name](t)
    assert t.report().findings == ()


def test_a_width_of_the_other_model_that_has_to_divide_is_found() -> None:
    codes = _codes(lambda t: t.tensor("bs target_hidden").reshape(-1, t.size("draft_hidden")))
    assert codes == ["SHP301"]
