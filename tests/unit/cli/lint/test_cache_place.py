"""Where results are kept: in the project, next to its table, or where the environment says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from shapecheck.rules.owners_meet import BAD

Lint = Callable[..., Result]


def _kept(folder: Path) -> int:
    return len(list(folder.glob("*.json.z")))


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_at_the_mark_of_the_project(mark: str, project: Path, shapecheck_lint: Lint) -> None:
    (project / mark).touch()
    shapecheck_lint("src")
    assert _kept(project / ".shapecheck_cache") == 1
    assert (project / ".shapecheck_cache" / ".gitignore").read_text() == "*\n"
    again = shapecheck_lint("src", "--statistics")
    assert "result from the cache" in again.stderr
    assert again.exit_code == 1


def test_next_to_the_table(project: Path, shapecheck_lint: Lint) -> None:
    (project / "src" / ".git").touch()
    (project / "pyproject.toml").write_text("[tool.shapecheck]\n")
    shapecheck_lint("src")
    assert _kept(project / ".shapecheck_cache") == 1
    assert not (project / "src" / ".shapecheck_cache").exists()


def test_options_that_only_filter_share_a_result(project: Path, shapecheck_lint: Lint) -> None:
    shapecheck_lint("src")
    clean = shapecheck_lint("src", "--ignore", "SHP301", "--statistics")
    assert "result from the cache" in clean.stderr
    assert clean.exit_code == 0


def test_the_environment_and_releases(
    project: Path, shapecheck_lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = project / "elsewhere"
    monkeypatch.setenv("SHAPECHECK_CACHE_DIR", str(place))
    shapecheck_lint("src")
    assert _kept(place / "results") == 1
    root = place / "releases" / "py-pyi" / "thing-1.0"
    (root / "thing").mkdir(parents=True)
    (root / ".complete").touch()
    (root / "thing" / "a.py").write_text(BAD)
    shapecheck_lint("pypi:thing==1.0")
    assert _kept(place / "results") == 2
    assert not list(root.glob(".shapecheck_cache"))


@pytest.mark.parametrize("setting", ["option", "table"])
def test_it_can_be_turned_off(setting: str, project: Path, shapecheck_lint: Lint) -> None:
    if setting == "table":
        (project / "pyproject.toml").write_text("[tool.shapecheck]\ncache = false\n")
    shapecheck_lint("src", *(["--no-cache"] if setting == "option" else []))
    assert not list(project.rglob(".shapecheck_cache"))
