"""`--diff-base`: what touches changed lines, in repositories of every state."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from shapecheck.cli.changes import read_changes
from shapecheck.diagnostics.model import Diagnostic, Note, Span
from shapecheck.errors import ShapecheckError
from shapecheck.rules import odd_one_out

Lint = Callable[..., Result]


def _git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def repository(project: Path) -> Path:
    """The project under version control, all of it committed."""
    _git(project, "init", "--quiet", "--initial-branch=main")
    _git(project, "add", ".")
    _git(project, "commit", "--quiet", "-m", "first")
    return project


def _edit(file: Path, line: int, text: str) -> None:
    lines = file.read_text().splitlines()
    lines[line - 1] = text
    file.write_text("\n".join(lines) + "\n")


def _finding(*lines: int, path: str = "src/a.py") -> Diagnostic:
    first, *others = (Span(path=path, line=line) for line in lines)
    notes = tuple(Note(message="", span=span) for span in others)
    return Diagnostic(code="SHP301", name="", message="", primary=first, notes=notes)


def test_an_untouched_finding_is_not_reported(repository: Path, shapecheck_lint: Lint) -> None:
    result = shapecheck_lint("src", "--diff-base", "HEAD")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "1 on unchanged lines" in result.stderr


def test_a_touched_line_or_chain_reports_it(repository: Path, shapecheck_lint: Lint) -> None:
    file = repository / "src" / "a.py"
    text = file.read_text()
    file.write_text(text.replace("buffer = torch.zeros", "buffer = torch.ones"))
    assert file.read_text() != text
    assert shapecheck_lint("src", "--diff-base", "HEAD").exit_code == 1
    copies = [number for number, line in enumerate(text.splitlines(), 1) if ".copy_(" in line]
    _edit(file, copies[0], text.splitlines()[copies[0] - 1] + "  # the other end")
    file.write_text(file.read_text().replace("torch.ones((", "torch.ones(("))
    assert shapecheck_lint("src", "--diff-base", "main").exit_code == 1


def test_the_callers_that_a_finding_is_told_from_belong_to_its_chain(
    repository: Path, shapecheck_lint: Lint
) -> None:
    file = repository / "src" / "odd.py"
    file.write_text(odd_one_out.BAD)
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "-m", "odd")
    words = ("src", "--select", "SHP302", "--diff-base", "HEAD")
    assert shapecheck_lint(*words).exit_code == 0
    lines = odd_one_out.BAD.splitlines()
    first = next(number for number, line in enumerate(lines, 1) if "idle(target" in line)
    _edit(file, first, f"{lines[first - 1]}  # a caller that is right")
    assert shapecheck_lint(*words).exit_code == 1


def test_the_ranges_of_edits_deletions_and_new_files(repository: Path) -> None:
    file = repository / "src" / "long.py"
    file.write_text("".join(f"x = {number}\n" for number in range(1, 21)))
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "-m", "second")
    lines = file.read_text().splitlines()
    lines[4] = "x = 'edited'"
    del lines[9]
    file.write_text("\n".join(lines) + "\n")
    (repository / "src" / "new ñ.py").write_text("y = 1\n")
    changes = read_changes(repository / "src", "HEAD")
    touched = [
        line
        for line in range(1, 20)
        if changes.touch(_finding(line, path="long.py"), repository / "src")
    ]
    assert touched == [5, 9, 10]
    assert changes.touch(_finding(1, 5, path="long.py"), repository / "src")
    assert changes.touch(_finding(999, path="new ñ.py"), repository / "src")
    assert not changes.touch(_finding(5), repository)


def test_what_the_base_gained_since_is_not_ours(repository: Path) -> None:
    _git(repository, "checkout", "--quiet", "-b", "topic")
    _git(repository, "checkout", "--quiet", "main")
    _edit(repository / "src" / "a.py", 5, "    pass")
    _git(repository, "commit", "--quiet", "-am", "on main")
    _git(repository, "checkout", "--quiet", "topic")
    assert read_changes(repository, "main").lines == {}


def test_content_that_looks_like_a_header_is_content(repository: Path) -> None:
    file = repository / "src" / "a.py"
    file.write_text(file.read_text() + "++ b/other.py\n@@ -1 +1 @@\n")
    (name,) = read_changes(repository, "HEAD").lines
    assert name == file.resolve()


@pytest.mark.parametrize("name", ['quo"te.py', "sp ace.py", "tab\t.py", "名.py"])
def test_names_of_every_kind(name: str, repository: Path) -> None:
    (repository / name).write_text("x = 1\n")
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "-m", "odd")
    (repository / name).write_text("x = 2\n")
    assert read_changes(repository, "HEAD").touch(_finding(1, path=name), repository)


def test_settings_of_the_repository_do_not_matter(repository: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {trace}\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "diff.odd.textconv", "diff.odd.command"):
        _git(repository, "config", key, str(script))
    for key, value in (("diff.noprefix", "false"), ("diff.mnemonicPrefix", "true")):
        _git(repository, "config", key, value)
    (repository / ".gitattributes").write_text("*.py diff=odd\n")
    _edit(repository / "src" / "a.py", 5, "    pass")
    trace.unlink(missing_ok=True)
    assert read_changes(repository, "HEAD").touch(_finding(5), repository)
    assert not trace.exists()


@pytest.mark.parametrize("revision", ["nosuch", "--output=x", "HEAD~9", "", "a b", "x\0y"])
def test_unknown_revisions_are_refused(
    revision: str, repository: Path, shapecheck_lint: Lint
) -> None:
    result = shapecheck_lint("src", f"--diff-base={revision}")
    assert result.exit_code == 2
    assert result.stderr.startswith("shapecheck lint: --diff-base")
    assert not (repository / "x").exists()


def test_no_repository(project: Path) -> None:
    with pytest.raises(ShapecheckError, match="not inside a git repository"):
        read_changes(project, "HEAD")


def test_no_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ShapecheckError, match="git, which is not installed"):
        read_changes(repository, "HEAD")
