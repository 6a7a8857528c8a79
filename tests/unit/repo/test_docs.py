"""The documents say what the code does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

# In a process of its own: other tests declare names.
SHIPPED = """
import json
from shapecheck.dims.vocabulary import lookup, names
print(json.dumps({name: lookup(name).owner for name in names()}))
"""


def test_names_page_lists_the_whole_vocabulary_with_its_owners() -> None:
    page = (ROOT / "docs/names.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, flags=re.MULTILINE))
    run = subprocess.run(
        [sys.executable, "-c", SHIPPED], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert rows == json.loads(run.stdout)


def test_ci_ends_with_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"^pip install -e '\.\[test\]' && pytest$", readme, re.MULTILINE)
    assert command is not None
    assert (ROOT / ".ci/run").read_text().rstrip().endswith(command.group())


def test_lint_page_lists_every_setting() -> None:
    from shapecheck.cli.project_settings import ProjectSettings

    page = (ROOT / "docs/lint.md").read_text()
    table = page[page.index("| key |") :]
    keys = set(re.findall(r"^\| `([a-z-]+)` \|", table, flags=re.MULTILINE))
    fields = ProjectSettings.model_fields.values()
    assert keys == {field.alias for field in fields}


def test_lint_page_names_only_options_that_exist() -> None:
    from shapecheck.cli.lint import lint

    page = (ROOT / "docs/lint.md").read_text()
    known = {name for option in lint.params for name in (*option.opts, *option.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]+", page)) <= known
