"""Poly is a commutative ring in normal form, and evaluation is a homomorphism out of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapecheck.dims import Poly

NAMES = ("bs", "topk", "num_steps", "target_hidden")
VALUES = dict(zip(NAMES, (2, 3, 5, 7), strict=True))

monomials = st.lists(st.sampled_from(NAMES), max_size=3)
terms = st.tuples(monomials, st.integers(-9, 9))


def poly_of(pairs: list[tuple[list[str], int]]) -> Poly[str]:
    total: Poly[str] = Poly.constant(0)
    for names, coefficient in pairs:
        term: Poly[str] = Poly.constant(coefficient)
        for name in names:
            term = term * Poly.symbol(name)
        total = total + term
    return total


polys = st.lists(terms, max_size=4).map(poly_of)
single_terms = st.tuples(monomials, st.integers(1, 9)).map(lambda term: poly_of([term]))


def number(poly: Poly[str]) -> int:
    return poly.evaluate(VALUES.__getitem__)


@given(polys, polys, polys)
def test_ring_laws(a: Poly[str], b: Poly[str], c: Poly[str]) -> None:
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a - a == Poly.constant(0)
    assert a * Poly.constant(1) == a


@given(polys, polys)
def test_evaluation_respects_the_operations(a: Poly[str], b: Poly[str]) -> None:
    assert number(a + b) == number(a) + number(b)
    assert number(a - b) == number(a) - number(b)
    assert number(a * b) == number(a) * number(b)


@given(polys, single_terms)
def test_division_undoes_a_product(a: Poly[str], term: Poly[str]) -> None:
    assert (a * term).divide(term) == a


@given(polys, polys)
def test_division_undoes_a_product_with_a_sum(a: Poly[str], b: Poly[str]) -> None:
    if a.terms and b.terms:
        assert (a * b).divide(b) == a


@given(polys, polys)
def test_a_quotient_by_a_sum_multiplies_back(a: Poly[str], b: Poly[str]) -> None:
    quotient = a.divide(b)
    if quotient is not None:
        assert quotient * b == a


@given(polys, single_terms)
def test_a_quotient_multiplies_back(a: Poly[str], term: Poly[str]) -> None:
    quotient = a.divide(term)
    if quotient is not None:
        assert quotient * term == a


@given(polys)
def test_substituting_numbers_is_evaluation(a: Poly[str]) -> None:
    values: dict[str, Poly[str]] = {name: Poly.constant(n) for name, n in VALUES.items()}
    assert a.substitute(values).as_int() == number(a)


@given(polys)
def test_equal_polynomials_hash_and_print_alike(a: Poly[str]) -> None:
    again = poly_of([(list(names), coefficient) for names, coefficient in reversed(a.terms)])
    assert again == a
    assert hash(again) == hash(a)
    assert str(again) == str(a)


@given(polys)
def test_symbols_are_those_that_matter(a: Poly[str]) -> None:
    names = {name for name in NAMES if any(name in monomial for monomial, _ in a.terms)}
    assert a.symbols() == names


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([], "0"),
        ([([], 7)], "7"),
        ([(["bs"], 1)], "bs"),
        ([(["topk", "bs"], 1)], "bs*topk"),
        ([(["num_steps"], 1), ([], 1)], "num_steps+1"),
        ([(["bs"], -2), ([], -1)], "-2*bs-1"),
    ],
)
def test_text(pairs: list[tuple[list[str], int]], text: str) -> None:
    assert str(poly_of(pairs)) == text


def test_as_symbol_is_for_exactly_one_symbol() -> None:
    bs, topk = Poly.symbol("bs"), Poly.symbol("topk")
    assert bs.as_symbol() == "bs"
    assert (bs + bs).as_symbol() is None
    assert (bs * topk).as_symbol() is None
    assert (bs + topk).as_symbol() is None


def test_division_refuses_what_is_not_exact() -> None:
    bs, three = Poly.symbol("bs"), Poly.constant(3)
    assert bs.divide(three) is None
    assert bs.divide(Poly.constant(0)) is None
    assert (bs + three).divide(bs) is None
    assert (bs + three).divide(bs + three) == Poly.constant(1)
