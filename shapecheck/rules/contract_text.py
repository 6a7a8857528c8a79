"""Faults in the text of contracts as findings: what SHP101, SHP102 and SHP103 share."""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.rules.base import Rule
from shapecheck.static.facts import Facts


def contract_text(rule: Rule, facts: Facts) -> Iterator[Diagnostic]:
    """One finding of the rule for each fault with its code."""
    for fault in facts.contract_faults:
        if fault.code == rule.code:
            yield Diagnostic(
                code=rule.code,
                name=rule.name,
                message=fault.message,
                primary=fault.span,
                notes=fault.notes,
                cell=fault.cell,
            )
