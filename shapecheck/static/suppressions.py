"""Suppression comments: `# shapecheck: ignore[SHP301] reason`, never blanket, never unused."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass

from shapecheck.diagnostics.model import Diagnostic, Note, Severity, Span

_COMMENT = re.compile(r"#\s*shapecheck:\s*ignore(?P<codes>\[[^\]]*\])?(?P<reason>.*)$")
_CODE = re.compile(r"SHP\d{3}$")
_MARK = "shapecheck:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """One comment: the codes it silences on its line, or on the next when it stands alone."""

    codes: tuple[str, ...]
    span: Span
    line: int
    fault: str = ""


def find_suppressions(text: str, path: str) -> list[Suppression]:
    """Every suppression comment of a source text."""
    if _MARK not in text:
        return []
    found: list[Suppression] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            if match is not None:
                found.append(_suppression(match, token, path))
    except (tokenize.TokenError, SyntaxError):
        return found
    return found


def _suppression(match: re.Match[str], token: tokenize.TokenInfo, path: str) -> Suppression:
    line, column = token.start
    alone = not token.line[:column].strip()
    given = (match["codes"] or "").strip("[]")
    codes = tuple(code.strip().upper() for code in given.split(",") if code.strip())
    fault = ""
    if not codes:
        fault = "a blanket suppression hides what comes later; name the codes: ignore[SHP301]"
    elif any(_CODE.match(code) is None for code in codes):
        fault = "a code looks like SHP301"
    elif not match["reason"].strip():
        fault = "say why: # shapecheck: ignore[SHP301] the reason"
    return Suppression(
        codes=codes,
        span=Span(path=path, line=line, column=column + 1),
        line=line + 1 if alone else line,
        fault=fault,
    )


def apply_suppressions(
    findings: list[Diagnostic], suppressions: list[Suppression]
) -> list[Diagnostic]:
    """The findings that stay, and SHP902 for every comment that is unused or malformed."""
    silenced: dict[tuple[str, int, str], Suppression] = {}
    for one in suppressions:
        if not one.fault:
            for code in one.codes:
                silenced[(one.span.path, one.line, code)] = one
    used: set[tuple[str, int, str]] = set()
    kept: list[Diagnostic] = []
    for finding in findings:
        place = finding.primary
        key = (place.path, place.line, finding.code) if place else ("", 0, "")
        if key in silenced:
            used.add(key)
        else:
            kept.append(finding)
    return kept + [
        _unused(one, code)
        for one in suppressions
        for code in one.codes or ("",)
        if one.fault or (one.span.path, one.line, code) not in used
    ]


def _unused(suppression: Suppression, code: str) -> Diagnostic:
    message = suppression.fault or f"{code} is not reported on line {suppression.line}"
    advice = "repair the comment" if suppression.fault else "delete the comment"
    return Diagnostic(
        code="SHP902",
        name="unused-suppression",
        message=message,
        severity=Severity.ERROR,
        primary=suppression.span,
        notes=(Note(label="settle it", message=advice),),
        cell=code,
    )
