"""Which equalities are evidence, and how they are worded."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Mod

from shapecheck.symbolic.expressions import Judge

B, K, N, S, H, D = (
    sympy.Symbol(name, integer=True, positive=True) for name in ("b", "k", "n", "s", "h", "d")
)
NAMES = {B: "bs", K: "topk", N: "num_draft_tokens", S: "num_steps", H: "target_hidden",
         D: "draft_hidden"}  # fmt: skip
NUMBERS = {B: 5, K: 5, N: 5, S: 6, H: 64, D: 64}


@pytest.fixture
def judge() -> Judge:
    made = Judge()
    for symbol, name in NAMES.items():
        made.know(symbol, name, NUMBERS[symbol])
    return made


def texts(judge: Judge, expr, answer: bool = True) -> list[str]:
    return [str(equation) for equation in judge.equations(expr, answer)]


@pytest.mark.parametrize(
    ("expr", "answer", "said"),
    [
        (sympy.Eq(H, D), True, ["target_hidden == draft_hidden"]),
        (sympy.Ne(D, H), False, ["draft_hidden == target_hidden"]),
        (sympy.Eq(H, D), False, []),
        (sympy.Ne(H, D), True, []),
        (sympy.Eq(B * H, B * D), True, ["target_hidden == draft_hidden"]),
        (sympy.Eq(B * H + K, B * D + K), True, ["target_hidden == draft_hidden"]),
        (sympy.Or(sympy.Eq(H, 1), sympy.Eq(D, H)), True, ["draft_hidden == target_hidden"]),
        (sympy.And(sympy.Ge(B, 1), sympy.Eq(D, H)), True, ["draft_hidden == target_hidden"]),
        (sympy.And(sympy.Ne(D, H), sympy.Ge(B, 1)), False, ["draft_hidden == target_hidden"]),
        (sympy.Not(sympy.Or(sympy.Eq(B, 1), sympy.Ne(D, H))), True,
         ["draft_hidden == target_hidden"]),
        (sympy.Eq(Max(1, H), H, evaluate=False), True, []),
        (sympy.Eq(Max(1, H), D, evaluate=False), True, ["target_hidden == draft_hidden"]),
    ],
)  # fmt: skip
def test_the_deciding_atom_is_reduced_to_what_differs(judge, expr, answer, said):
    assert texts(judge, expr, answer) == said


@pytest.mark.parametrize(
    "expr",
    [
        sympy.Eq(FloorDiv(B * H, B), H, evaluate=False),
        sympy.Eq(Mod(B * H, H), 0, evaluate=False),
        sympy.Eq(K * (B + 1) - K, B * K, evaluate=False),
    ],
)
def test_an_identity_is_no_evidence(judge, expr):
    assert texts(judge, expr) == []


def _rest(whole, by):
    """The size that -1 stands for."""
    return FloorDiv(whole, by)


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        (Mod(B * H, 4 * FloorDiv(H, 4)), 0, []),
        (Mod(B * H, S * FloorDiv(H, 4) * 4), 0, ["Mod(bs, num_steps)"]),
        (Mod(B * H, D * FloorDiv(H, D)), 0, ["Mod(target_hidden, draft_hidden)"]),
        (B * H, D * FloorDiv(H, D) * _rest(B * H, D * FloorDiv(H, D)),
         ["Mod(target_hidden, draft_hidden)"]),
        (B * H, FloorDiv(B, K) * K * H, ["Mod(bs, topk)"]),
        (FloorDiv(H, 2), FloorDiv(D, 2), ["target_hidden/2"]),
        (FloorDiv(H, 2) * 2, D, ["target_hidden"]),
        (FloorDiv(S, K) * K, S, ["topk*((num_steps//topk))"]),
    ],
)  # fmt: skip
def test_a_quotient_that_leaves_nothing_needs_only_that(judge, left, right, said):
    found = texts(judge, sympy.Eq(left, right, evaluate=False))
    assert [one.partition(" == ")[0] for one in found] == said


def test_an_or_that_holds_by_itself_needs_no_coincidence(judge):
    same = sympy.Eq(FloorDiv(B * H, B), H, evaluate=False)
    assert texts(judge, sympy.Or(same, sympy.Eq(H, D), evaluate=False)) == []


def test_a_loop_count_is_the_dimension_it_counts(judge):
    grown = sympy.Eq(B * (5 * K + 1), B * ((S - 1) * K + 1))
    assert texts(judge, grown) != []
    judge.counted.add(S)
    assert texts(judge, grown) == []


def test_counting_excuses_no_equality_without_a_number(judge):
    judge.counted |= {B, K}
    assert texts(judge, sympy.Eq(B, K)) == ["bs == topk"]


def test_merged_dimensions_are_one(judge):
    judge.merge(D, H)
    assert texts(judge, sympy.Eq(H, D)) == []
    assert judge.root("draft_hidden") == judge.root("target_hidden")


def test_merging_is_transitive(judge):
    judge.merge(D, H)
    judge.merge(H, N)
    assert texts(judge, sympy.Eq(D, N)) == []


def test_data_sizes_have_no_name_and_no_evidence(judge):
    unnamed = sympy.Symbol("u0", integer=True)
    assert texts(judge, sympy.Eq(unnamed, H)) == []


@pytest.mark.parametrize(
    ("expr", "said"),
    [(B <= N, "bs == num_draft_tokens"), (B * K <= N * K, "bs == num_draft_tokens"),
     (sympy.Le(B, B + K), None), (sympy.Le(B, 9), None), (sympy.Eq(B, N), None)],
)  # fmt: skip
def test_an_order_is_a_relation_unless_it_always_holds(judge, expr, said):
    found = judge.inequality(expr)
    assert (found and str(found)) == said


def test_torch_messages_are_read_in_names(judge):
    assert judge.readable("got b x 3*h\nmore") == "got bs x 3*target_hidden"
