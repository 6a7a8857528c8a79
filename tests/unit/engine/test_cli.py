"""The commands: text on standard output, faults as one line with a remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from engine.cli import commands, main


def invoke(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(commands, arguments, input=text, catch_exceptions=False)


def test_run_prints_the_text_and_the_figures() -> None:
    result = invoke("run", "--target", "tiny", "--prompt", "hello", "--max-tokens", "5")
    assert result.exit_code == 0
    assert result.stdout.startswith("!`\x19")
    assert "5 tokens" in result.stderr
    assert "tok/s" in result.stderr


def test_run_reads_standard_input() -> None:
    arguments = ("run", "--target", "tiny", "--max-tokens", "5", "--prompt")
    assert invoke(*arguments, "-", text="hello").stdout == invoke(*arguments, "hello").stdout


def test_run_with_a_tree() -> None:
    plain = invoke("run", "--target", "tiny", "--prompt", "hello", "--algorithm", "none")
    tree = invoke(
        *("run", "--target", "tiny", "--prompt", "hello", "--algorithm", "eagle3"),
        *("--topk", "3", "--num-steps", "3", "--num-draft-tokens", "8", "--graphs"),
    )
    assert tree.exit_code == 0
    assert tree.stdout == plain.stdout


def test_bench_compares_in_one_process() -> None:
    result = invoke("bench", "--target", "tiny", "--max-tokens", "8", "--requests", "2", "--json")
    found = json.loads(result.stdout)
    assert found["same_tokens"] is True
    assert set(found["runs"]) == {"none", "ngram"}
    assert found["runs"]["ngram"]["output_tokens"] == 16
    assert found["runs"]["ngram"]["contract_seconds_per_iteration"] >= 0
    text = invoke("bench", "--target", "tiny", "--max-tokens", "8").stdout
    assert "times as fast as plain decoding, the same tokens" in text


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("run", "--prompt", "a", "--algorithm", "eagle"), "needs draft="),
        (("run", "--prompt", "a", "--target", "/no/model"), "neither 'smollm2' nor an existing"),
        (("run", "--prompt", "", "--target", "tiny"), "give at least one"),
        (("run", "--prompt", "a", "--target", "tiny", "--temperature", "-1"), "temperature"),
        (("run", "--prompt", "a", "--target", "tiny", "--chat"), "no chat template"),
        (("run", "--target", "tiny"), "Missing option '--prompt'"),
        (("run", "--prompt", "a", "--device", "abacus"), "use cpu or cuda"),
        (("bench", "--target", "tiny", "--requests", "0"), "0 is not in the range"),
        (("walk",), "No such command"),
    ],
    ids=str,
)
def test_faults_are_one_line(
    arguments: tuple[str, ...],
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["engine", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert wanted in shown
    assert "Traceback" not in shown


def test_module_runs() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "engine", "run", "--target", "tiny", "--prompt", "hello"],
        capture_output=True,
        cwd=root,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"!`\x19")


def module(*arguments: str, text: bytes | None = None, **environment: str) -> tuple[int, str, str]:
    """`python -m engine` in a process of its own: exit code, output, errors."""
    done = subprocess.run(
        [sys.executable, "-m", "engine", *arguments],
        capture_output=True,
        input=text,
        cwd=Path(__file__).parents[3],
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_level_that_does_not_exist() -> None:
    code, _, error = module("run", "--prompt", "a", SHAPECHECK="bogus")
    assert (code, error.count("\n")) == (2, 1)
    assert error.startswith("error: SHAPECHECK='bogus' is no level: use one of off, warn")


def test_a_package_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no torch', name='torch')")
    root = Path(__file__).parents[3]
    code, _, error = module("run", PYTHONPATH=os.pathsep.join((str(tmp_path), str(root))))
    assert code == 2
    assert error == "error: the engine needs torch; pip install 'torch-shapecheck[engine]'\n"


def test_input_and_output_that_are_no_text() -> None:
    run = ("run", "--target", "tiny", "--max-tokens", "30", "--prompt")
    code, _, error = module(*run, "-", text=b"a\xff", PYTHONIOENCODING="utf-8:strict")
    assert code == 2
    assert error.startswith("error: standard input is no text")
    code, _, error = module(*run, "hello", PYTHONIOENCODING="latin-1")
    assert code == 2
    assert error.endswith("set PYTHONIOENCODING=utf-8\n")
    assert "Traceback" not in error


def test_a_reader_that_leaves() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "engine", "run", "--target", "tiny", "--prompt", "hello"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=120)
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 1
