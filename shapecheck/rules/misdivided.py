"""Rows of one width divided by another width: the part of SHP303 that judges divisions."""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note
from shapecheck.rules.base import Rule
from shapecheck.rules.chain import chain
from shapecheck.static.counts import misdivides
from shapecheck.static.facts import Facts


def misdivided(rule: Rule, facts: Facts) -> Iterator[Diagnostic]:
    """One finding for each division of requests times a width by a width that is another."""
    for one in facts.divisions.values():
        if not misdivides(one.rows.poly, one.by.poly, single_branch=one.single_branch):
            continue
        yield Diagnostic(
            code=rule.code,
            name=rule.name,
            message=f"{one.rows.poly} rows are divided by {one.by.poly}, which is not their width: "
            f"the quotient is no number of requests ({one.where})",
            certainty=Certainty.MAY,
            primary=one.span,
            notes=(
                *chain(one.rows),
                *chain(one.by, "divisor "),
                Note(
                    label="settle it",
                    message="divide by the width the rows were made with, or keep the number of "
                    "requests itself",
                ),
            ),
            dims=DimPair(expected=str(one.rows.poly), found=str(one.by.poly)),
            cell=one.where,
        )
