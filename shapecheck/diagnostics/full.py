"""The full text of a finding: the heading, then every note on its own line."""

from __future__ import annotations

from shapecheck.diagnostics.concise import render_concise
from shapecheck.diagnostics.model import Diagnostic, Note

_LABEL_WIDTH = 14


def render_full(diagnostic: Diagnostic) -> str:
    """The rendering a person reads: of a line of source, or of a boundary crossed at run time."""
    return "\n".join([_heading(diagnostic), *(_note(note) for note in diagnostic.notes)])


def _heading(diagnostic: Diagnostic) -> str:
    crossing = diagnostic.crossing
    if crossing is None or diagnostic.primary is not None:
        return render_concise(diagnostic)
    phase = f" (phase {crossing.phase})" if crossing.phase else ""
    return f"{diagnostic.code} {crossing.where}{phase}, {crossing.field}"


def _note(note: Note) -> str:
    place = f"{note.span} " if note.span else ""
    if note.label:
        return f"  {note.label:<{_LABEL_WIDTH}}  {place}{note.message}"
    return f"  {place}{note.message}"
