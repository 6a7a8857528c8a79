"""JSON, version 1: fields may be added, never changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from shapecheck.diagnostics.model import Diagnostic

VERSION = 1


def render_json(findings: Sequence[Diagnostic], summary: Mapping[str, object]) -> str:
    """The whole report as one JSON document, ending in a newline."""
    document = {
        "version": VERSION,
        "findings": [as_dict(finding) for finding in findings],
        "summary": dict(summary),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_dict(finding: Diagnostic) -> dict[str, object]:
    """One finding as plain data."""
    primary = finding.primary
    crossing = finding.crossing
    dims = finding.dims
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": str(finding.severity),
        "certainty": str(finding.certainty),
        "message": finding.message,
        "primary": primary
        and {"path": primary.path, "line": primary.line, "column": primary.column},
        "crossing": crossing
        and {"where": crossing.where, "field": crossing.field, "phase": crossing.phase},
        "notes": [
            {
                "label": note.label,
                "message": note.message,
                "path": note.span.path if note.span else None,
                "line": note.span.line if note.span else None,
            }
            for note in finding.notes
        ],
        "dims": dims and {"expected": dims.expected, "found": dims.found},
        "cell": finding.cell,
        "fingerprint": finding.fingerprint or fingerprint(finding),
    }


def fingerprint(finding: Diagnostic) -> str:
    """What stays the same when lines move: code, file, cell and the two names."""
    dims = finding.dims
    parts = [
        finding.code,
        finding.primary.path if finding.primary else "",
        finding.cell,
        dims.expected if dims else "",
        dims.found if dims else "",
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
