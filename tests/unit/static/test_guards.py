"""Guards: the two senses of one test."""

from __future__ import annotations

import ast

import pytest

from shapecheck.static.guards import Guard

_TESTS = ["a", "not a", "not not a.b", "topk == 1", "topk > 1 or x", "f(x)", "mode.is_idle() and y"]


@pytest.mark.parametrize("text", _TESTS)
def test_the_negation_of_a_guard_is_the_guard_of_the_other_sense(text: str) -> None:
    test = ast.parse(text, mode="eval").body
    holds, fails = Guard.of(test, True, "m.py"), Guard.of(test, False, "m.py")
    assert holds.negated() == fails
    assert (holds.negated().test, str(holds.negated())) == (fails.test, str(fails))
