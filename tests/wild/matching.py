"""When a finding counts for a case: the place or the cell of the bug, with the right two names.

A finding counts on the buggy release when both hold:

1. its primary place lies in the lines that the case names, with no slack, or its cell is one that
   the case names; places in notes do not count;
2. its two names are the two that were confused, one of each side, in either order. Names are
   compared as polynomials, after the aliases of the case. A rule that has no pair of sizes
   (index-as-count) has to name one of each side, as written, in its message.

A case is FOUND when at least one finding counts. It is CLEAN when, on the fixed release, no finding
counts at the lines of the fix or the cells, and none has the code, cell and names of one that
counted. CLEAN alone says little: only FOUND and CLEAN together are a hit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.dims.expr import Poly
from tests.wild.cases import Case, Tree

Sides = tuple[frozenset[Poly[str]], frozenset[Poly[str]]]


def counting(case: Case, tree: Tree, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings that count for a case on one of its releases."""
    return [one for one in findings if _is_there(case, tree, one) and has_names(case, one)]


def remaining(
    case: Case, counted: Iterable[Diagnostic], findings: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """The findings on the fixed release that say the bug is still there."""
    findings = list(findings)
    before = {_identity(one) for one in counted}
    there = counting(case, case.fixed, findings)
    return there + [one for one in findings if _identity(one) in before and one not in there]


def has_names(case: Case, finding: Diagnostic) -> bool:
    """Whether the two names of a finding are the two that the case confuses."""
    if finding.dims is None:
        names = case.names
        return all(
            any(_says(finding.message, one) for one in side) for side in (names.wrong, names.right)
        )
    wrong, right = _sides(case)
    found = polynomial(finding.dims.found, _canonical(case.aliases))
    expected = polynomial(finding.dims.expected, _canonical(case.aliases))
    return (found in wrong and expected in right) or (found in right and expected in wrong)


def _says(message: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) is not None


def polynomial(text: str, canonical: Mapping[str, str]) -> Poly[str]:
    """A sum of products of names and integers, names replaced by their canonical ones.

    Anything else is one opaque name, which equals only the same text.
    """
    try:
        return _poly(ast.parse(text.strip(), mode="eval").body, canonical)
    except (SyntaxError, ValueError):
        return _name(text.strip(), canonical)


def _poly(node: ast.expr, canonical: Mapping[str, str]) -> Poly[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Poly[str].constant(node.value)
    if isinstance(node, ast.Name):
        return _name(node.id, canonical)
    if isinstance(node, ast.BinOp):
        left, right = _poly(node.left, canonical), _poly(node.right, canonical)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
    raise ValueError(ast.unparse(node))


def _name(text: str, canonical: Mapping[str, str]) -> Poly[str]:
    return Poly[str].symbol(canonical.get(text, text))


def _canonical(aliases: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {other: name for name, others in aliases.items() for other in others}


def _sides(case: Case) -> Sides:
    canonical = _canonical(case.aliases)
    wrong, right = case.names.wrong, case.names.right
    return (
        frozenset(polynomial(one, canonical) for one in wrong),
        frozenset(polynomial(one, canonical) for one in right),
    )


def _is_there(case: Case, tree: Tree, finding: Diagnostic) -> bool:
    place = finding.primary
    if place is not None and any(site.holds(place.path, place.line) for site in tree.sites):
        return True
    return plain_cell(finding.cell) in case.cells


def plain_cell(cell: str) -> str:
    """A cell without the mark of a keyword: `make(width=)` is the parameter `make(width)`."""
    return cell.replace("=)", ")")


def _identity(finding: Diagnostic) -> tuple[str, str, str, str]:
    dims = finding.dims
    return (
        finding.code,
        plain_cell(finding.cell),
        dims.expected if dims else "",
        dims.found if dims else "",
    )
