"""Workflow commands: escaping, levels, and findings without a place."""

from __future__ import annotations

from dataclasses import replace

from shapecheck.diagnostics.github import render_github
from shapecheck.diagnostics.model import Certainty, Diagnostic, Note, Severity, Span

FINDING = Diagnostic(
    code="SHP301",
    name="owners-meet",
    message="100% of a, b: both",
    primary=Span(path="a,b:c%.py", line=3, column=7),
    notes=(
        Note(label="read", message="x", span=Span(path="d.py", line=1)),
        Note(label="settle it", message="y"),
    ),
)


def test_one_line_with_escaped_properties_and_text() -> None:
    assert render_github(FINDING) == (
        "::error col=7,file=a%2Cb%3Ac%25.py,line=3,title=SHP301 owners-meet::"
        "100%25 of a, b: both%0Aread: d.py:1:1 x%0Asettle it: y"
    )


def test_levels_and_certainty() -> None:
    warning = replace(FINDING, severity=Severity.WARNING, certainty=Certainty.MAY, notes=())
    assert render_github(warning).startswith("::warning ")
    assert render_github(warning).endswith("both (may)")
    assert render_github(replace(FINDING, severity=Severity.NOTE)).startswith("::notice ")


def test_no_command_can_be_smuggled_in() -> None:
    text = render_github(replace(FINDING, message="x\r\n::stop-commands::t", primary=None))
    assert "\n" not in text
    assert "\r" not in text
    assert text.startswith("::error title=")
