"""Every rule, listed by hand in the order of judgement: the first to explain a cause reports it."""

from __future__ import annotations

import difflib

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.errors import ShapecheckError
from shapecheck.rules import (
    buffer_capacity,
    contract_syntax,
    dtype_owner,
    idle_differs,
    index_as_count,
    internal_error,
    loose_dim,
    odd_one_out,
    owners_meet,
    pack_drift,
    rows_meet,
    silent_copy,
    two_formulae,
    unknown_dim,
    unreadable_file,
    unused_suppression,
    vocab_domain,
    wrong_dtype,
    wrong_owner,
    wrong_phase,
)
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.static.facts import Facts

RULES: tuple[Rule, ...] = (
    contract_syntax.RULE,
    unknown_dim.RULE,
    loose_dim.RULE,
    odd_one_out.RULE,
    wrong_owner.RULE,
    wrong_phase.RULE,
    owners_meet.RULE,
    dtype_owner.RULE,
    vocab_domain.RULE,
    rows_meet.RULE,
    index_as_count.RULE,
    idle_differs.RULE,
    wrong_dtype.RULE,
    buffer_capacity.RULE,
    silent_copy.RULE,
    two_formulae.RULE,
    pack_drift.RULE,
    internal_error.RULE,
    unused_suppression.RULE,
    unreadable_file.RULE,
)


def check_codes(codes: frozenset[str]) -> None:
    """Refuse codes that no rule has."""
    known = {rule.code for rule in RULES}
    for code in sorted(codes - known):
        raise ShapecheckError(f"{code}: no rule has this code; `shapecheck rules` lists them")


def find_rule(code: str) -> Rule:
    """The rule of a code or a name; ShapecheckError names the nearest one."""
    wanted = code.strip()
    for rule in RULES:
        if wanted.upper() == rule.code or wanted.lower() == rule.name:
            return rule
    names = [*(rule.code for rule in RULES), *(rule.name for rule in RULES)]
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ShapecheckError(f"{wanted}: no rule of this name; {hint}`shapecheck rules` lists them")


def judge(facts: Facts) -> list[Diagnostic]:
    """The findings of every rule; those that name two owners come first, then by place."""
    verdicts = Verdicts()
    findings: dict[tuple[str, str, str], Diagnostic] = {}
    checks = [*(rule.stated for rule in RULES), *(rule.check for rule in RULES)]
    for check in checks:
        for one in check(facts, verdicts) if check is not None else ():
            findings.setdefault((one.code, str(one.primary), one.cell), one)
    return sorted(findings.values(), key=_order)


# Two owners' sizes in one place are what the tool is for.
_LEADING = frozenset({"SHP201", "SHP202", "SHP301", "SHP302", "SHP305"})


def _order(finding: Diagnostic) -> tuple[bool, str, int, int, str]:
    place = finding.primary
    later = finding.code not in _LEADING
    if place is None:
        return (later, "", 0, 0, finding.code)
    return (later, place.path, place.line, place.column, finding.code)
