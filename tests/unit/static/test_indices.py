"""Indices that are only counted: told by syntax, and looked for where the text speaks of one."""

from __future__ import annotations

import ast

import pytest

from shapecheck.static.index import index_module
from shapecheck.static.indices import may_measure_index, unused_indices

_BODIES = [
    "return x[:len(keep)]",
    "return x[: len(accept_index )]",
    "return x[: len(keep,)]",
    "return x[: len(\n        keep  # those that stay\n    )]",
    "return x[: keep_idx.shape[0]]",
    "return x[: idx\n        .size(0)]",
    "return x[: selected.numel()]",
]


@pytest.mark.parametrize("body", _BODIES)
def test_the_text_speaks_of_every_index_that_is_only_counted(body: str) -> None:
    text = f"def f(x, keep, accept_index, keep_idx, idx, selected):\n    {body}\n"
    module = index_module(ast.parse(text), name="m", path="m.py", is_package=False, lines=2)
    assert list(unused_indices(module.functions[0]))
    assert may_measure_index(text)


def test_a_text_that_measures_no_index_is_not_walked() -> None:
    assert not may_measure_index("def f(x, n):\n    index = n + 1\n    return x[:n]\n")
