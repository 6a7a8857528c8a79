"""Every literate case reports exactly what its comments say, and nothing else."""

from __future__ import annotations

from pathlib import Path

from shapecheck.static.report import run


def test_case(case, tmp_path: Path) -> None:
    for path, text in case.files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    report = run((str(tmp_path),))
    found = {(one.primary.path, one.primary.line, one.code) for one in report.findings}
    assert found == case.expected
