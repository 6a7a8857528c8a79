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
    notes=(
        Note(message="n", span=Span(path="pkg/b.py", line=4)),
        Note(message="o", others=(Span(path="pkg/c.py", line=5),)),
    ),
)


def test_spans_are_the_primary_and_the_chain() -> None:
    assert [span.path for span in spans(FINDING)] == ["pkg/a.py", "pkg/b.py", "pkg/c.py"]


def test_paths_move_and_the_fingerprint_stays(tmp_path: Path) -> None:
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    for name in "ab":
        (tmp_path / "src" / "pkg" / f"{name}.py").touch()
    moved = seen_from(FINDING, root=tmp_path / "src", folder=tmp_path)
    assert [span.path for span in spans(moved)] == ["src/pkg/a.py", "src/pkg/b.py", "pkg/c.py"]
    assert moved.fingerprint == fingerprint(FINDING)


def test_a_file_outside_keeps_its_path(tmp_path: Path) -> None:
    moved = seen_from(FINDING, root=tmp_path, folder=tmp_path / "elsewhere")
    assert list(spans(moved)) == list(spans(FINDING))
