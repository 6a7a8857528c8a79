"""One line a finding: place, code, message."""

from __future__ import annotations

from shapecheck.diagnostics.model import Certainty, Diagnostic


def render_concise(diagnostic: Diagnostic) -> str:
    """`path:line:column CODE message`, or `CODE message` where there is no line of source."""
    place = f"{diagnostic.primary} " if diagnostic.primary else ""
    unsure = " (may)" if diagnostic.certainty is Certainty.MAY else ""
    return f"{place}{diagnostic.code}{unsure} {diagnostic.message}"
