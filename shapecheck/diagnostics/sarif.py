"""SARIF 2.1.0, for code scanning: one run, its rules, and one result a finding."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from shapecheck.diagnostics.json import fingerprint
from shapecheck.diagnostics.model import Diagnostic, Note, Severity, Span

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_FAULTS = ("SHP901", "SHP903")  # the tool's own: they are no results of the analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePage:
    """What SARIF says about a rule: one line, and the page in Markdown."""

    code: str
    name: str
    summary: str
    page: str
    severity: Severity


def render_sarif(
    findings: Sequence[Diagnostic],
    rules: Sequence[RulePage],
    *,
    version: str,
    summary: Mapping[str, object],
    exit_code: int,
) -> str:
    """The whole report as one SARIF log, ending in a newline.

    Paths of the findings are relative to the folder that the log's `%SRCROOT%` stands for.
    """
    pages = sorted(rules, key=lambda page: page.code)
    numbers = {page.code: number for number, page in enumerate(pages)}
    driver = {
        "name": "shapecheck",
        "semanticVersion": version,
        "rules": [_rule(page) for page in pages],
    }
    faults = [one for one in findings if one.code in _FAULTS]
    invocation = {
        "executionSuccessful": exit_code != 2,
        "exitCode": exit_code,
        "toolExecutionNotifications": [_notification(one) for one in faults],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, numbers) for one in findings if one.code not in _FAULTS],
        "properties": dict(summary),
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(page: RulePage) -> dict[str, object]:
    return {
        "id": page.code,
        "name": "".join(part.capitalize() for part in page.name.split("-")),
        "shortDescription": {"text": page.summary},
        "help": {"text": page.page, "markdown": page.page},
        "defaultConfiguration": {"level": _LEVELS[page.severity]},
    }


def _result(finding: Diagnostic, numbers: Mapping[str, int]) -> dict[str, object]:
    related = [
        (note.label if note.others else _labelled(note), span)
        for note in finding.notes
        for span in (*((note.span,) if note.span else ()), *note.others)
    ]
    result: dict[str, object] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": _text(finding)},
        "locations": [_location(finding.primary)] if finding.primary else [],
        "relatedLocations": [
            {"id": number, **_location(span), "message": {"text": text}}
            for number, (text, span) in enumerate(related, 1)
        ],
        "partialFingerprints": {"shapecheck/v1": finding.fingerprint or fingerprint(finding)},
        "properties": {
            "certainty": str(finding.certainty),
            "cell": finding.cell,
            **(
                {"expected": finding.dims.expected, "found": finding.dims.found}
                if finding.dims
                else {}
            ),
        },
    }
    if finding.code in numbers:
        result["ruleIndex"] = numbers[finding.code]
    return result


def _text(finding: Diagnostic) -> str:
    """The message, then the notes that have no place of their own."""
    return "\n".join(
        [finding.message, *(_labelled(note) for note in finding.notes if note.span is None)]
    )


def _labelled(note: Note) -> str:
    return f"{note.label}: {note.message}" if note.label else note.message


def _notification(finding: Diagnostic) -> dict[str, object]:
    return {
        "descriptor": {"id": finding.code},
        "level": _LEVELS[finding.severity],
        "message": {"text": _text(finding)},
        "locations": [_location(finding.primary)] if finding.primary else [],
    }


def _location(span: Span) -> dict[str, object]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(span.path), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": span.line, "startColumn": span.column},
        }
    }
