"""The places of a finding, and the same finding told from another folder."""

from __future__ import annotations

from pathlib import Path

from shapecheck.diagnostics.json import fingerprint
from shapecheck.diagnostics.model import Diagnostic, Note, Span
from shapecheck.diagnostics.places import seen_from, spans

FINDING = Diagnostic(
    code="SHP301",
    name="owners-meet",
    message="m",
    primary=Span(path="pkg/a.py", line=3),
    notes=(Note(message="n", span=Span(path="pkg/b.py", line=4)), Note(message="o")),
)


def test_spans_are_the_primary_and_the_chain() -> None:
    assert [span.path for span in spans(FINDING)] == ["pkg/a.py", "pkg/b.py"]


def test_paths_move_and_the_fingerprint_stays() -> None:
    moved = seen_from(FINDING, root=Path("/repo/src"), folder=Path("/repo"))
    assert [span.path for span in spans(moved)] == ["src/pkg/a.py", "src/pkg/b.py"]
    assert moved.fingerprint == fingerprint(FINDING)


def test_a_file_outside_keeps_its_path() -> None:
    assert list(spans(seen_from(FINDING, root=Path("/cache/x"), folder=Path("/repo")))) == list(
        spans(FINDING)
    )
