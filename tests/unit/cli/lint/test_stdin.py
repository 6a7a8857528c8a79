"""Source on stdin: an editor's unsaved text in place of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from shapecheck.rules.owners_meet import BAD, GOOD

Lint = Callable[..., Result]


def test_source_without_a_name(shapecheck_lint: Lint) -> None:
    result = shapecheck_lint("-", "--output-format", "concise", stdin=BAD)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:5:")


def test_it_stands_in_for_the_file_of_its_name(project: Path, shapecheck_lint: Lint) -> None:
    words = ("-", "--stdin-filename", "src/a.py")
    assert shapecheck_lint(*words, stdin=GOOD).exit_code == 0
    assert shapecheck_lint("src").exit_code == 1
    assert shapecheck_lint("-", "--stdin-filename", "src/new.py", stdin=BAD).exit_code == 1
    assert not (project / "src" / "new.py").exists()


def test_settings_are_found_from_its_name(project: Path, shapecheck_lint: Lint) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.shapecheck.per-file-ignores]\n"src/*" = ["SHP301"]\n'
    )
    assert shapecheck_lint("-", "--stdin-filename", "src/new.py", stdin=BAD).exit_code == 0
    assert shapecheck_lint("-", "--stdin-filename", "other.py", stdin=BAD).exit_code == 1


def test_it_leaves_nothing_in_the_cache(project: Path, shapecheck_lint: Lint) -> None:
    shapecheck_lint("-", "--stdin-filename", "src/a.py", stdin=GOOD)
    assert not (project / ".shapecheck_cache").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-", "src"), "stdin is linted alone"),
        (("src", "--stdin-filename", "a.py"), "nothing is read from stdin"),
    ],
)
def test_mixed_targets_are_refused(
    words: tuple[str, ...], text: str, shapecheck_lint: Lint
) -> None:
    result = shapecheck_lint(*words, stdin=BAD)
    assert result.exit_code == 2
    assert text in result.stderr


def test_broken_source_is_said(shapecheck_lint: Lint) -> None:
    result = shapecheck_lint("-", stdin="import torch, draft\ndef f(:\n")
    assert result.exit_code == 2
    assert "SHP903" in result.stdout
