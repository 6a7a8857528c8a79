"""The rule of matching, on findings made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shapecheck.diagnostics.model import Diagnostic, DimPair, Span
from tests.wild.cases import Case, Names, load_cases
from tests.wild.matching import counting, has_names, polynomial, remaining

CASE = Case.model_validate(
    {
        "id": "made-up",
        "engine": "none",
        "what": "A table has bs*(steps+1) rows where bs*draft_tokens are needed.",
        "names": {"wrong": ["bs*steps+bs"], "right": ["bs*draft_tokens"]},
        "aliases": {"steps": ["num_steps"], "bs": ["batch_size"]},
        "buggy": {"release": "none==1", "subpaths": ["pkg"], "sites": ["pkg/a.py:10-12"]},
        "fixed": {"release": "none==2", "subpaths": ["pkg"], "sites": ["pkg/a.py:20"]},
        "cells": ["Table.fill(rows)"],
    }
)
NAMES = DimPair(expected="bs*draft_tokens", found="batch_size*(num_steps+1)")


def finding(
    line: int, *, dims: DimPair | None = NAMES, cell: str = "", path: str = "pkg/a.py"
) -> Diagnostic:
    return Diagnostic(
        code="SHP303",
        name="rows-meet",
        message="made by hand",
        primary=Span(path=path, line=line),
        dims=dims,
        cell=cell,
    )


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (finding(10), True),
        (finding(12), True),
        (finding(13), False),
        (finding(10, path="pkg/b.py"), False),
        (finding(90, cell="Table.fill(rows=)"), True),
        (finding(10, dims=None), False),
        (finding(10, dims=DimPair(expected=NAMES.found, found=NAMES.expected)), True),
        (finding(10, dims=DimPair(expected="bs*draft_tokens", found="bs*draft_tokens")), False),
        (finding(10, dims=DimPair(expected="bs*draft_tokens", found="steps")), False),
    ],
)
def test_place_or_cell_and_both_names_decide(one: Diagnostic, counts: bool) -> None:
    assert bool(counting(CASE, CASE.buggy, [one])) is counts


def test_a_rule_without_a_pair_of_sizes_names_both_in_its_message() -> None:
    names = {"wrong": ["len(rows)"], "right": ["table"]}
    case = CASE.model_copy(update={"names": Names.model_validate(names)})
    said = replace(finding(10, dims=None), message="self.table keeps its first len(rows) rows")
    assert has_names(case, said)
    assert not has_names(case, replace(said, message="self.tables keeps its first len(rows) rows"))


def test_a_finding_of_the_same_cell_and_names_elsewhere_is_still_there() -> None:
    counted = [finding(10, cell="Other.cell")]
    moved = finding(400, cell="Other.cell", path="pkg/moved.py")
    assert remaining(CASE, counted, [moved]) == [moved]
    assert remaining(CASE, counted, [finding(400, cell="Third.cell")]) == []


def test_a_finding_at_the_fix_is_still_there() -> None:
    assert remaining(CASE, [], [finding(20)]) == [finding(20)]
    assert remaining(CASE, [], [finding(10)]) == []


def test_sums_of_products_are_compared_in_normal_form() -> None:
    assert polynomial("b*(a+1)", {}) == polynomial("b + a*b", {})
    assert polynomial("3*x", {"x": "y"}) == polynomial("y*3", {})
    assert polynomial("len(a)", {}) != polynomial("a", {})
    assert polynomial("not an expression", {}) == polynomial("not an expression", {})


def test_every_case_reads_and_names_two_different_sides() -> None:
    cases = load_cases()
    assert len(cases) == 21
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert not set(case.names.wrong) & set(case.names.right), case.id
        for tree in (case.buggy, case.fixed):
            for site in tree.sites:
                assert site.first <= site.last, case.id
                assert site.path.split("/")[0] == tree.package, case.id
