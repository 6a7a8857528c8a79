"""What `shapecheck lint` imports, and when."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("pydantic", "rich", "torch", "jaxtyping", "beartype", "shapecheck.static")


def _loaded(*words: str, folder: Path) -> str:
    program = (
        f"import sys; from shapecheck.cli.main import main; main({list(words)!r}); "
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    root = str(Path(__file__).parents[4])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {program}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
    )
    return done.stderr.splitlines()[-1]


def test_the_help_page_loads_nothing(project: Path) -> None:
    assert _loaded("lint", "--help", folder=project) == "[]"


def test_a_run_without_a_table_loads_the_analysis_only(project: Path) -> None:
    assert _loaded("lint", "src", folder=project) == "['shapecheck.static']"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_progress_bar_is_for_terminals(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shapecheck.cli import lint as module

    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: is_terminal, raising=False)
    with module._progress() as progress:
        assert (progress is not None) is is_terminal
        if progress is not None:
            progress(1, 2)
