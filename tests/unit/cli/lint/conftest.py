"""A project with one finding, and the command to lint it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shapecheck.cli.lint import lint
from shapecheck.rules.owners_meet import BAD

Lint = Callable[..., Result]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: `src/a.py` has one SHP301 on line 5."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHAPECHECK_CACHE_DIR", raising=False)
    return tmp_path


@pytest.fixture
def shapecheck_lint(project: Path) -> Lint:
    """Runs `shapecheck lint` in the project; findings are on stdout, the rest on stderr."""

    def run(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(lint, list(words or ("src",)), input=stdin)

    return run
