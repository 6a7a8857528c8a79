"""Codes, prefixes and patterns: which findings are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from shapecheck.cli.selection import FileIgnores, FilePatterns, expand
from shapecheck.errors import ShapecheckError

CODES = ["SHP201", "SHP301", "SHP302", "SHP901"]
Lint = Callable[..., Result]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), set()),
        (("SHP3",), {"SHP301", "SHP302"}),
        (("shp301, SHP2",), {"SHP301", "SHP201"}),
        (("SHP301", "SHP302"), {"SHP301", "SHP302"}),
        (("SHP",), set(CODES)),
        ((" , ",), set()),
    ],
)
def test_prefixes_and_lists(given: tuple[str, ...], expected: set[str]) -> None:
    assert expand(given, CODES) == expected


@pytest.mark.parametrize("word", ["SHP4", "SHP3011", "301", "owners-meet", "*"])
def test_unknown_codes_are_refused(word: str) -> None:
    with pytest.raises(ShapecheckError, match="no rule has this code or prefix"):
        expand((word,), CODES)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(ShapecheckError, match=r"did you mean SHP30\d\?"):
        expand(("SPH301",), CODES)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("tests/*", "tests/unit/a.py", True),
        ("tests", "tests/unit/a.py", True),
        ("tests/", "tests/a.py", True),
        ("unit", "tests/unit/a.py", True),
        ("./src/a.py", "src/a.py", True),
        ("src/a.py", "other/src/a.py", False),
        ("*_generated.py", "src/x_generated.py", True),
        ("a.py", "src/a.py", True),
        ("tests/*", "src/tests.py", False),
        ("src", "srcs/a.py", False),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool, tmp_path: Path) -> None:
    patterns = FilePatterns(folder=tmp_path, patterns=(pattern,))
    assert patterns.match(tmp_path / path) is expected
    assert not patterns.match(tmp_path.parent / path)


def test_a_crash_is_never_hidden(tmp_path: Path) -> None:
    ignores = FileIgnores.of({"*": ["SHP"]}, CODES, tmp_path)
    assert ignores.hide("SHP301", tmp_path / "a.py")
    assert not ignores.hide("SHP901", tmp_path / "a.py")


def test_select_and_ignore_take_prefixes(shapecheck_lint: Lint) -> None:
    assert shapecheck_lint("src", "--select", "SHP3").exit_code == 1
    assert shapecheck_lint("src", "--select", "SHP2,SHP4").exit_code == 0
    assert shapecheck_lint("src", "--ignore", "SHP30").exit_code == 0
    assert "no rule has this code" in shapecheck_lint("src", "--ignore", "X").stderr


def test_per_file_ignores(shapecheck_lint: Lint) -> None:
    assert shapecheck_lint("src", "--per-file-ignores", "src/*:SHP301").exit_code == 0
    assert shapecheck_lint("src", "--per-file-ignores", "tests/*:SHP301").exit_code == 1
    wrong = shapecheck_lint("src", "--per-file-ignores", "src/*")
    assert wrong.exit_code == 2
    assert "PATTERN:CODES" in wrong.stderr


def test_excluded_files_are_not_read(project: Path, shapecheck_lint: Lint) -> None:
    (project / "src" / "broken.py").write_text("import torch, draft\ndef f(:\n")
    result = shapecheck_lint("src", "--exclude", "broken.py", "--output-format", "concise")
    assert result.stdout.count("\n") == 1
    assert "1 finding in 1 files" in result.stderr


def test_patterns_hold_for_targets_told_from_below(
    project: Path, shapecheck_lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    (project / "pyproject.toml").write_text(
        '[tool.shapecheck]\nper-file-ignores = {"src/*" = ["SHP3"]}\n'
    )
    assert shapecheck_lint("../src").exit_code == 0


@pytest.mark.parametrize("target", ["x" * 5000, "a\0b", ""])
def test_what_is_no_path_is_said(target: str, shapecheck_lint: Lint) -> None:
    result = shapecheck_lint(target)
    assert result.exit_code == (1 if not target else 2)
    assert "Traceback" not in result.output
