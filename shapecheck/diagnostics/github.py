"""GitHub workflow commands: one annotation a finding, on the line it leads with."""

from __future__ import annotations

from shapecheck.diagnostics.model import Certainty, Diagnostic, Note, Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_github(finding: Diagnostic) -> str:
    """One `::error` line (or warning, notice); the chain follows the message inside it."""
    properties = {"title": f"{finding.code} {finding.name}"}
    if finding.primary is not None:
        place = finding.primary
        properties |= {"file": place.path, "line": str(place.line), "col": str(place.column)}
    unsure = " (may)" if finding.certainty is Certainty.MAY else ""
    text = "\n".join([f"{finding.message}{unsure}", *(_note(note) for note in finding.notes)])
    shown = ",".join(f"{name}={_property(value)}" for name, value in sorted(properties.items()))
    return f"::{_COMMANDS[finding.severity]} {shown}::{_data(text)}"


def _note(note: Note) -> str:
    label = f"{note.label}: " if note.label else ""
    return f"{label}{f'{note.span} ' if note.span else ''}{note.message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
