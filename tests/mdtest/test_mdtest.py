"""Every literate case reports exactly what its comments say, and nothing else."""

from __future__ import annotations

from pathlib import Path

from shapecheck.static.report import run
from tests.mdtest.conftest import Case, read_cases


def test_case(case: Case, tmp_path: Path) -> None:
    for path, text in case.files.items():
        if not path.endswith(".toml"):
            compile(text, path, "exec")
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    packs = tuple(str(tmp_path / folder) for folder in case.packs)
    report = run((str(tmp_path),), pack_paths=packs)
    found = {
        (one.primary.path.removeprefix(f"{tmp_path}/"), one.primary.line, one.code)
        for one in report.findings
    }
    if case.unseen:
        assert not case.expected, "a section has either a verdict or `# error:` comments"
        assert not found, "lint sees this now: replace the verdict by `# error:` comments"
    assert found == case.expected


def test_wild_case_is_a_pair(wild_document: Path) -> None:
    bug, fix = read_cases(wild_document)
    assert bug.unseen or bug.expected, "a bug has a verdict"
    assert fix.is_fix
    assert not fix.expected
    assert fix.files != bug.files
    assert 25 <= sum(text.count("\n") for text in bug.files.values()) <= 90
