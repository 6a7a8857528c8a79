"""The baseline: written, read, split and stale."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from shapecheck.cli.baseline import read_baseline, write_baseline
from shapecheck.diagnostics.model import Diagnostic, Span
from shapecheck.errors import ShapecheckError

Lint = Callable[..., Result]


def _finding(cell: str, line: int = 1, path: str = "a.py", code: str = "SHP301") -> Diagnostic:
    return Diagnostic(
        code=code,
        name="owners-meet",
        message="m",
        primary=Span(path=path, line=line),
        cell=cell,
    )


def test_known_findings_are_not_reported_and_new_ones_are(
    project: Path, shapecheck_lint: Lint
) -> None:
    written = shapecheck_lint("src", "--write-baseline", "known.json")
    assert (written.exit_code, written.stdout) == (0, "")
    assert "1 finding written to known.json" in written.stderr
    clean = shapecheck_lint("src", "--baseline", "known.json")
    assert clean.exit_code == 0
    assert "0 findings in 1 files" in clean.stderr
    assert "1 in the baseline" in clean.stderr
    source = (project / "src" / "a.py").read_text()
    (project / "src" / "a.py").write_text(f"# moved\n\n{source}")
    assert shapecheck_lint("src", "--baseline", "known.json").exit_code == 0
    (project / "src" / "b.py").write_text(source)
    new = shapecheck_lint("src", "--baseline", "known.json", "--output-format", "concise")
    assert new.exit_code == 1
    assert new.stdout.startswith("b.py:5:")


def test_stale_entries_are_named(project: Path, shapecheck_lint: Lint) -> None:
    (project / "src" / "b.py").write_text((project / "src" / "a.py").read_text())
    shapecheck_lint("src", "--write-baseline", "known.json")
    (project / "src" / "b.py").write_text("import torch\n")
    result = shapecheck_lint("src", "--baseline", "known.json")
    assert result.exit_code == 0
    assert "not found any more: 1;" in result.stderr
    assert "SHP301 b.py" in result.stderr
    (project / "src" / "b.py").unlink()
    assert "SHP301 b.py" in shapecheck_lint("src", "--baseline", "known.json").stderr


def test_what_the_run_did_not_look_at_is_not_stale(project: Path, shapecheck_lint: Lint) -> None:
    (project / "src" / "b.py").write_text((project / "src" / "a.py").read_text())
    shapecheck_lint("src", "--write-baseline", "known.json")
    other_file = shapecheck_lint("src/a.py", "--baseline", "known.json")
    other_code = shapecheck_lint("src", "--baseline", "known.json", "--select", "SHP2")
    assert "not found any more" not in other_file.stderr + other_code.stderr


def test_the_file_is_sorted_counted_and_without_lines(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    findings = [
        _finding("z"),
        _finding("a", line=7),
        _finding("z", line=9),
        _finding("b", path="0"),
    ]
    assert write_baseline(file, findings) == 4
    document = json.loads(file.read_text())
    assert document["version"] == 1
    entries = document["findings"]
    assert [(one["path"], one["cell"], one["count"]) for one in entries] == [
        ("0", "b", 1),
        ("a.py", "a", 1),
        ("a.py", "z", 2),
    ]
    assert {key for one in entries for key in one} == {
        "code",
        "path",
        "cell",
        "fingerprint",
        "count",
    }
    write_baseline(tmp_path / "again.json", reversed(findings))
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


def test_a_count_is_used_up(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    write_baseline(file, [_finding("z"), _finding("z")])
    new, left = read_baseline(file).split([_finding("z", line) for line in (1, 2, 3)])
    assert [one.primary and one.primary.line for one in new] == [3]
    assert not left
    new, left = read_baseline(file).split([_finding("z")])
    assert new == []
    assert sum(left.values()) == 1


def test_faults_of_the_tool_are_never_known(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    assert write_baseline(file, [_finding("f", code="SHP901"), _finding("", code="SHP903")]) == 0
    new, _ = read_baseline(file).split([_finding("f", code="SHP901")])
    assert len(new) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no JSON object"),
        ('{"version": 2}', "version 2"),
        ('{"version": 1}', "no list of findings"),
        ('{"version": 1, "findings": [1]}', "an entry without"),
        ('{"version": 1, "findings": [{"fingerprint": "a", "count": 0}]}', "an entry without"),
        ('{"version": 1, "findings": [{"fingerprint": "a", "count": true}]}', "an entry without"),
    ],
)
def test_broken_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(ShapecheckError, match=f"{message}.*--write-baseline"):
        read_baseline(tmp_path / "known.json")


def test_missing_and_unwritable_files(shapecheck_lint: Lint) -> None:
    missing = shapecheck_lint("src", "--baseline", "none.json")
    assert missing.exit_code == 2
    assert "cannot be read" in missing.stderr
    unwritable = shapecheck_lint("src", "--write-baseline", "no/folder.json")
    assert unwritable.exit_code == 2
    assert "cannot be written" in unwritable.stderr


def test_the_baseline_of_the_table_need_not_exist_to_be_written(
    project: Path, shapecheck_lint: Lint
) -> None:
    (project / "pyproject.toml").write_text('[tool.shapecheck]\nbaseline = "known.json"\n')
    assert "cannot be read" in shapecheck_lint().stderr
    assert shapecheck_lint("src", "--write-baseline", "known.json").exit_code == 0
    assert shapecheck_lint().exit_code == 0
