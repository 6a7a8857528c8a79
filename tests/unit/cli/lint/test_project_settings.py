"""`[tool.shapecheck]`: where it is found, what it may say, and what wins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from shapecheck.cli.project_settings import read_settings
from shapecheck.cli.table_file import find_table
from shapecheck.errors import ShapecheckError

Lint = Callable[..., Result]


def _write(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(text)
    return file


def test_every_key(tmp_path: Path) -> None:
    file = _write(
        tmp_path,
        """[tool.shapecheck]
output-format = "sarif"
select = ["SHP3"]
ignore = ["SHP303"]
exclude = ["third_party"]
packs = ["contracts"]
baseline = "known.json"
cache = false
[tool.shapecheck.per-file-ignores]
"tests/*" = ["SHP3"]
""",
    )
    settings = read_settings(file)
    assert settings.output_format == "sarif"
    assert (settings.select, settings.ignore) == (["SHP3"], ["SHP303"])
    assert settings.packs == ["contracts"]
    assert settings.per_file_ignores == {"tests/*": ["SHP3"]}
    assert (settings.exclude, settings.baseline, settings.cache) == (
        ["third_party"],
        "known.json",
        False,
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("selct = []", "has no key selct; did you mean select"),
        ("per_file_ignores = {}", "did you mean per-file-ignores"),
        ("Ignore = []", "did you mean ignore"),
        ("xyz = 1", "has no key xyz; its keys are baseline, cache, exclude"),
        ('select = "SHP3"', r"select: Input should be a valid list"),
        ("select = [3]", r"select\.0: Input should be a valid string"),
        ('cache = "yes"', "cache: Input should be a valid boolean"),
        ('output-format = "xml"', "output-format: Input should be 'full'"),
    ],
)
def test_unknown_keys_and_wrong_types_are_refused(line: str, text: str, tmp_path: Path) -> None:
    file = _write(tmp_path, f"[tool.shapecheck]\n{line}\n")
    with pytest.raises(ShapecheckError, match=text):
        read_settings(file)


@pytest.mark.parametrize("text", ["[tool.shapecheck\n", "[tool]\nshapecheck = 1\n", "\xff = 1\n"])
def test_broken_files_are_a_fault_of_the_input(
    text: str, project: Path, shapecheck_lint: Lint
) -> None:
    (project / "pyproject.toml").write_bytes(text.encode("latin-1"))
    result = shapecheck_lint()
    assert result.exit_code == 2
    assert "pyproject.toml" in result.stderr
    assert result.stdout == ""


def test_the_nearest_table_is_found_upward(tmp_path: Path) -> None:
    inner = tmp_path / "pkg" / "sub"
    inner.mkdir(parents=True)
    (inner / "a.py").write_text("")
    outer = _write(tmp_path, "[tool.shapecheck]\n")
    _write(tmp_path / "pkg", "[tool.ruff]\n")
    assert find_table(inner / "a.py") == outer
    nearest = _write(tmp_path / "pkg", "[tool.shapecheck]\n")
    assert find_table(inner) == nearest


def test_the_table_holds_for_a_run_and_options_win(project: Path, shapecheck_lint: Lint) -> None:
    _write(project, '[tool.shapecheck]\nignore = ["SHP301"]\noutput-format = "concise"\n')
    assert shapecheck_lint().exit_code == 0
    result = shapecheck_lint("src", "--ignore", "SHP302")
    assert result.exit_code == 1
    assert result.stdout.count("\n") == 1


def test_patterns_and_the_baseline_are_relative_to_the_file(
    project: Path, shapecheck_lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(project, '[tool.shapecheck]\nper-file-ignores = {"src/*" = ["SHP301"]}\n')
    monkeypatch.chdir(project / "src")
    assert shapecheck_lint("a.py").exit_code == 0
    assert shapecheck_lint("a.py", "--write-baseline", "../known.json").exit_code == 0
    _write(project, '[tool.shapecheck]\nbaseline = "known.json"\n')
    assert shapecheck_lint("a.py").exit_code == 1  # nothing was found when it was written
    shapecheck_lint("a.py", "--write-baseline", "../known.json")
    assert shapecheck_lint("a.py").exit_code == 0


def test_another_file_can_be_named(project: Path, shapecheck_lint: Lint) -> None:
    (project / "lint.toml").write_text('[tool.shapecheck]\nignore = ["SHP301"]\n')
    assert shapecheck_lint("src", "--config", "lint.toml").exit_code == 0
    missing = shapecheck_lint("src", "--config", "none.toml")
    assert missing.exit_code == 2
    assert "cannot be read" in missing.stderr
    (project / "empty.toml").write_text("")
    assert "has no table" in shapecheck_lint("src", "--config", "empty.toml").stderr


def test_targets_of_two_projects_are_refused(project: Path, shapecheck_lint: Lint) -> None:
    (project / "other").mkdir()
    (project / "other" / "b.py").write_text("")
    _write(project / "other", "[tool.shapecheck]\n")
    result = shapecheck_lint("src", "other")
    assert result.exit_code == 2
    assert "--config" in result.stderr


def test_packs_are_relative_to_the_file(
    project: Path, shapecheck_lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(project, '[tool.shapecheck]\npacks = ["none"]\n')
    monkeypatch.chdir(project / "src")
    result = shapecheck_lint("a.py")
    assert result.exit_code == 2
    assert str(project / "none") in result.stderr
