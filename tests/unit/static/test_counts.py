"""Row counts: units by name, conflicts, capacities, and what a guard says."""

from __future__ import annotations

import ast

import pytest

from shapecheck.dims.expr import Poly
from shapecheck.static.counts import (
    count_symbol,
    exceeds,
    is_exact_capacity,
    is_padded_tokens,
    rows_conflict,
    unit_of_name,
    units_of,
)
from shapecheck.static.guards import Guard, hangs_on_mode, single_branch
from shapecheck.static.symbols import SizePoly


def _count(name: str) -> SizePoly:
    symbol = count_symbol(name)
    assert symbol is not None
    return Poly.symbol(symbol)


ONE: SizePoly = Poly.constant(1)
BS, MAX_BS, TOPK = _count("bs"), _count("max_bs"), _count("topk")
N, S = _count("num_draft_tokens"), _count("speculative_num_steps")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bs", ("R", "live")),
        ("_bs", ("R", "live")),
        ("max_bs", ("R", "cap")),
        ("padded_bs", ("R", "padded")),
        ("bs_padded", ("R", "padded")),
        ("speculative_num_draft_tokens", ("N", "live")),
        ("num_input_tokens", ("T", "padded")),
        ("num_tokens", ("T", "live")),
        ("width", ("", "")),
        ("max_", ("", "")),
    ],
)
def test_unit_of_name(name: str, expected: tuple[str, str]) -> None:
    assert unit_of_name(name) == expected


def test_units_forget_which_count_it_was() -> None:
    assert units_of(BS * N) == units_of(MAX_BS * _count("num_verify_tokens"))
    assert units_of(BS * N + _count("num_tokens")) is None


@pytest.mark.parametrize(
    ("left", "right", "conflict"),
    [
        (BS * N, BS * (S + ONE), True),
        (BS * N, BS, True),
        (BS * N, MAX_BS * N, False),
        (N, S + ONE, True),
        (BS, N, False),
        (BS, ONE, False),
        (BS * BS, BS, False),
        (_count("num_tokens"), BS, False),
    ],
)
def test_rows_conflict(left: SizePoly, right: SizePoly, conflict: bool) -> None:
    assert rows_conflict(left, right) is conflict
    assert rows_conflict(right, left) is conflict


def test_with_a_single_branch_the_verify_width_is_the_depth_and_one() -> None:
    assert not rows_conflict(BS * N, BS * (S + ONE), single_branch=True)
    assert not rows_conflict(BS * TOPK, BS, single_branch=True)
    assert rows_conflict(BS * N, BS, single_branch=True)


def test_exceeds_only_when_a_width_is_missing() -> None:
    assert exceeds(BS * N, MAX_BS)
    assert not exceeds(BS, MAX_BS * N)
    assert not exceeds(BS, MAX_BS)


def test_exact_capacity() -> None:
    assert is_exact_capacity(MAX_BS * (ONE + _count("num_speculative_tokens")))
    assert not is_exact_capacity(BS * N)
    assert not is_exact_capacity(MAX_BS)
    assert is_padded_tokens(_count("num_input_tokens"))
    assert not is_padded_tokens(_count("num_tokens"))


def _guard(text: str, sense: bool) -> Guard:
    return Guard.of(ast.parse(text, mode="eval").body, sense)


@pytest.mark.parametrize(
    ("text", "sense", "expected"),
    [
        ("topk == 1", True, True),
        ("topk == 1", False, False),
        ("self.args.speculative_eagle_topk > 1", False, True),
        ("topk > 1", True, False),
        ("topk != 1", False, True),
        ("not topk > 1", True, True),
        ("page_size == 1 and topk == 1", True, True),
        ("page_size == 1 or topk == 1", True, False),
        ("page_size == 1 or topk > 1", False, True),
        ("topk == 2", True, False),
        ("bs == 1", True, False),
    ],
)
def test_single_branch(text: str, sense: bool, expected: bool) -> None:
    assert single_branch([_guard(text, sense)]) is expected


def test_mode_guards_are_calls_that_ask_what_it_is() -> None:
    assert hangs_on_mode([_guard("mode.is_decode() and x", True)])
    assert not hangs_on_mode([_guard("x > 1", True)])


@pytest.mark.parametrize("name", ["eagle_topk", "speculative_eagle_topk", "mtp_topk", "_topk"])
def test_a_count_is_the_same_under_the_name_of_a_method(name: str) -> None:
    assert unit_of_name(name) == unit_of_name("topk")


def test_a_method_alone_counts_nothing() -> None:
    assert unit_of_name("eagle_tokens") == ("", "")
