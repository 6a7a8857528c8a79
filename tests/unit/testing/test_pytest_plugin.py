"""`pytest --shapecheck=...` sets the level before test modules are imported."""

import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
import torch
from jaxtyping import Int64
from torch import Tensor
from shapecheck import contract

@contract
def step(a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> None: ...
"""
TEST = """
import torch
from checked import step

def test_step():
    step(torch.zeros(3, dtype=torch.int64), torch.zeros(4, dtype=torch.int64))
"""


def run(folder: Path, *arguments: str, env: dict[str, str] | None = None):
    (folder / "checked.py").write_text(MODULE)
    (folder / "conftest.py").write_text("import checked\n")
    (folder / "test_step.py").write_text(TEST)
    # The plugin may be installed under its entry point as well: one of the two is enough.
    plugin = ["-p", "no:shapecheck", "-p", "shapecheck.pytest_plugin"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments],
        cwd=folder,
        env={"PYTHONPATH": ":".join([str(folder), *sys.path]), **(env or {})},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 0, "1 passed"),
        (["--shapecheck=off"], 0, "1 passed"),
        (["--shapecheck=strict"], 1, "SHP201 step, argument b"),
        (["--shapecheck=loud"], 4, "invalid choice: 'loud'"),
    ],
)
def test_the_option(tmp_path: Path, arguments: list[str], code: int, text: str) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert text in done.stdout + done.stderr


def test_a_failure_ends_at_the_call_and_shows_no_tensor(tmp_path: Path) -> None:
    said = run(tmp_path, "--shapecheck=strict").stdout
    assert ">       step(torch.zeros(3" in said
    assert "_sc_" not in said
    assert "tensor([" not in said


def test_the_option_wins_over_the_variable(tmp_path: Path) -> None:
    done = run(tmp_path, "--shapecheck=off", env={"SHAPECHECK": "strict"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(tmp_path, env={"SHAPECHECK": "strict"}).returncode == 1
