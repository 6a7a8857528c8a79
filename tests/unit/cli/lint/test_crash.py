"""A crash of the analyser in one file: the others are linted, and the run ends with 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from shapecheck.static import analyse
from shapecheck.static.frames import Frame
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.loader import Source
from shapecheck.static.machine import Machine
from shapecheck.static.project import Project

Lint = Callable[..., Result]


@pytest.fixture
def crashing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions called `boom` crash the analyser; `src/b.py` has one."""
    (project / "src" / "b.py").write_text(
        "import torch\n\n\ndef boom(draft_config):\n    return torch.zeros(draft_config.hidden)\n"
    )
    real = analyse.run_root

    def run_root(machine: Machine, function: FunctionFacts, cls: ClassFacts | None) -> None:
        if function.name == "boom":
            raise KeyError("lost")
        real(machine, function, cls)

    monkeypatch.setattr(analyse, "run_root", run_root)


@pytest.mark.usefixtures("crashing")
def test_the_others_are_linted(shapecheck_lint: Lint) -> None:
    result = shapecheck_lint("src", "--output-format", "concise")
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[0].startswith("a.py:5:")
    assert lines[1].startswith("b.py:4:1 SHP901 the analysis of boom crashed: KeyError: 'lost'")
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("crashing")
@pytest.mark.parametrize(
    "words",
    [
        ("--ignore", "SHP901"),
        ("--select", "SHP3"),
        ("--exit-zero",),
        ("--per-file-ignores", "*:SHP9"),
        ("--write-baseline", "known.json"),
    ],
)
def test_nothing_hides_it(words: tuple[str, ...], shapecheck_lint: Lint) -> None:
    result = shapecheck_lint("src", *words)
    assert result.exit_code == 2
    assert "SHP901" in result.stdout


@pytest.mark.usefixtures("crashing")
def test_it_is_not_kept_in_the_cache(project: Path, shapecheck_lint: Lint) -> None:
    shapecheck_lint("src")
    assert not list((project / ".shapecheck_cache").glob("*.json.z"))


def test_a_crash_in_a_constructor_that_nobody_asked_for(
    project: Path, shapecheck_lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src" / "b.py").write_text(
        "import torch\n\n\n"
        "class Held:\n    def __init__(self, draft_config):\n"
        "        self.config = draft_config\n\n\n"
        "class Holder:\n    def __init__(self, draft_config):\n"
        "        self.rows = torch.zeros(draft_config.hidden_size)\n"
        "        self.held = Held(draft_config)\n"
    )

    def run_apart(machine: Machine, frame: Frame) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(Machine, "run_apart", run_apart)
    result = shapecheck_lint("src", "--output-format", "concise")
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[0].startswith("a.py:5:")
    assert "SHP901 the analysis of Held.__init__ crashed: KeyError: 'lost'" in lines[1]


def test_a_crash_while_a_file_is_indexed(
    project: Path, shapecheck_lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src" / "b.py").write_text("import torch, draft\n")
    real = Project.add

    def add(
        self: Project, source: Source, name: str, *, is_package: bool, whole: bool = False
    ) -> ModuleFacts | None:
        if name == "b":
            raise IndexError
        return real(self, source, name, is_package=is_package, whole=whole)

    monkeypatch.setattr(Project, "add", add)
    result = shapecheck_lint("src", "--output-format", "concise")
    assert result.exit_code == 2
    assert [line.split(" ")[:2] for line in result.stdout.splitlines()] == [
        ["a.py:5:33", "SHP301"],
        ["b.py:1:1", "SHP901"],
    ]


@pytest.mark.parametrize("name", ["index_definition", "_index_lazily"])
def test_a_crash_while_an_imported_file_is_indexed_costs_that_file_alone(
    name: str, project: Path, shapecheck_lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = project / "src" / "a.py"
    entry.write_text(f"from b import part, other\n{entry.read_text()}\n    part(); other()\n")
    (project / "src" / "b.py").write_text("def part():\n    pass\n\n\ndef other():\n    pass\n")

    def index(*_arguments: object, **_more: object) -> None:
        raise IndexError

    monkeypatch.setattr(f"shapecheck.static.project.{name}", index)
    result = shapecheck_lint("src/a.py", "--output-format", "concise")
    assert result.exit_code == 2
    assert [line.split(" ")[:2] for line in result.stdout.splitlines()] == [
        ["a.py:6:33", "SHP301"],
        ["b.py:1:1", "SHP901"],
    ]
