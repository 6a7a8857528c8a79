"""Which edits are layout: every node keeps its meaning, and its new place is known."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapecheck.static.layout import moves
from shapecheck.static.prefilter import Weight, weight

OLD = """import torch

def f(a, b=1):
    x = torch.zeros(a, b)  # why
    return f"{x.shape} {b!r}"

class C:
    y: int = 3
"""


def _places(text: str) -> list[tuple[str, int, int]]:
    return [
        (type(node).__name__, node.lineno, node.col_offset + 1)
        for node in ast.walk(ast.parse(text))
        if hasattr(node, "lineno")
    ]


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        "# first\n\n" + OLD,
        OLD.replace("  # why", ""),
        OLD.replace("(a, b)", "(\n        a,\n        b,\n    )"),
        OLD.replace("    ", "  "),
        OLD + "\n\n# last",
    ],
)
def test_layout(new: str) -> None:
    moved = moves(OLD, new, weight)
    assert moved is not None
    kept = [(kind, *moved[line, column]) for kind, line, column in _places(OLD)]
    assert kept == _places(new)


@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("zeros", "ones"),
        OLD.replace("b=1", "b=True"),
        OLD.replace("a, b)", "b, a)"),
        OLD.replace("y: int = 3", "y: int"),
        OLD + "z = 1\n",
        OLD.replace("def f", "async def f"),
        OLD.replace("!r", ""),
        OLD.replace("(a, b=1)", "(a, b=1"),
        "",
    ],
)
def test_no_layout(new: str) -> None:
    assert moves(OLD, new, weight) is None
    assert moves(new, OLD, weight) is None


def test_parentheses_that_part_a_name_from_what_it_starts_are_given_up() -> None:
    new = OLD.replace("torch.zeros(a", "(torch).zeros(a")
    assert moves(OLD, new, weight) is None
    assert moves(new, OLD, weight) is not None


def test_a_comment_that_makes_a_function_a_root_is_no_layout() -> None:
    new = OLD.replace("# why", "# Worker")
    assert moves(OLD, new, lambda text: Weight(works=True, tells="Worker" in text)) is None
    assert moves(OLD, new, weight) is not None


@given(st.lists(st.sampled_from(["", "# c", "#"]), min_size=9, max_size=9))
def test_lines_without_code_anywhere(extra: list[str]) -> None:
    lines = OLD.splitlines()
    new = "\n".join(f"{more}\n{line}" for more, line in zip(extra, lines, strict=False))
    moved = moves(OLD, new + "\n", weight)
    assert moved is not None
    assert moved[4, 5] == (8, 5)
