"""The command line: what it loads, what it prints, and the exit code of every fault."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import click
import pytest

from shapecheck.cli import faults, main
from shapecheck.errors import ShapecheckError

HEAVY = ("pydantic", "beartype", "jaxtyping", "torch", "rich", "numpy")


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=60, check=False
    )


def test_help_lists_commands_and_loads_nothing_heavy() -> None:
    program = (
        "import sys; from shapecheck.cli.main import main; code = main(['--help']); "
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = run("-c", program)
    assert done.stdout.splitlines()[-1] == "0 []"
    assert "pair" in done.stdout
    assert "demo" in done.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("shapecheck 0.")


@pytest.mark.parametrize("args", [["nosuch"], ["--nosuch"], ["pair"], ["pair", "--algorithm", "x"]])
def test_usage_errors_are_faults(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(args) == 2
    assert "Usage: shapecheck" in capsys.readouterr().err


def test_without_a_command_it_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_module_entry() -> None:
    done = run("-m", "shapecheck", "--version")
    assert (done.returncode, done.stderr) == (0, "")


def _raise(error: BaseException) -> Callable[..., None]:
    def command() -> None:
        raise error

    return command


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Puts a command `fail` in the group that raises what it is given."""

    def install(error: BaseException) -> None:
        module = ModuleType("shapecheck.cli.failing")
        module.__spec__ = ModuleSpec(module.__name__, loader=None)
        module.fail = click.Command("fail", callback=_raise(error))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        entry = main._Entry(module.__name__, "fail", "Fail.")
        monkeypatch.setitem(main._COMMANDS, "fail", entry)

    return install


FAULTS = [
    (ShapecheckError("SHP903 unreadable-file: a: b; do c"), 2, "shapecheck: SHP903 unreadable"),
    (RuntimeError("first line\nsecond"), 2, "SHP901 internal-error: RuntimeError: first line; run"),
    (RecursionError(), 2, "SHP901 internal-error: RecursionError: ; run again"),
    (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left on device; free some"),
    (KeyboardInterrupt(), 130, "shapecheck: interrupted"),
    (click.Abort(), 130, "shapecheck: interrupted"),
    (click.BadParameter("bad"), 2, "bad"),
    (SystemExit(7), 7, ""),
    (SystemExit(None), 0, ""),
]


@pytest.mark.parametrize(("error", "code", "text"), FAULTS, ids=lambda value: type(value).__name__)
def test_faults(
    error: BaseException,
    code: int,
    text: str,
    failing: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(error)
    assert main.main(["fail"]) == code
    captured = capsys.readouterr()
    assert text in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_debug_shows_the_traceback(
    failing: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHAPECHECK_DEBUG", "0")
    failing(RuntimeError("deep"))
    assert main.main(["fail"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert main.main(["--debug", "fail"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_leaves_is_not_an_error() -> None:
    program = (
        "import os, sys; from shapecheck.cli.main import main\n"
        "read, write = os.pipe(); os.close(read); os.dup2(write, 1)\n"
        "sys.exit(main(['--help']))"
    )
    done = run("-c", program)
    assert (done.returncode, done.stderr) == (141, "")


def test_exit_codes_are_distinct() -> None:
    assert (faults.CLEAN, faults.FINDINGS, faults.FAULT) == (0, 1, 2)


def test_a_name_that_the_terminal_cannot_say(tmp_path: Path) -> None:
    folder = tmp_path / "名"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-m", "shapecheck", "pair", str(folder), "--algorithm", "ngram"],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert done.returncode == 2
    assert b"\\u540d/config.json: hidden_size is missing" in done.stderr
