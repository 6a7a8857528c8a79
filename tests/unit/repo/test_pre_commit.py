"""The pre-commit hook runs a command that exists, on the whole program."""

from __future__ import annotations

from pathlib import Path

import yaml
from click.testing import CliRunner

from shapecheck.cli.main import cli
from shapecheck.rules.owners_meet import BAD

HOOKS = Path(__file__).parents[3] / ".pre-commit-hooks.yaml"


def test_the_hook_lints_the_folder(tmp_path: Path, monkeypatch) -> None:
    (hook,) = yaml.safe_load(HOOKS.read_text())
    assert (hook["id"], hook["pass_filenames"]) == ("shapecheck-lint", False)
    program, *words = [*hook["entry"].split(), *hook["args"]]
    assert program == "shapecheck"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BAD)
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 1
    assert "SHP301" in result.stdout
