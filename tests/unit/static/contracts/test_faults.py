"""What the linter says of a contract is what the decorator says when the module is imported."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from shapecheck.errors import ContractTextError
from shapecheck.spec import contract_of
from shapecheck.static.report import run

from .programs import CLASS, HEAD, HELD, MARKED, METHOD, REFUSED


def _linted(folder: Path, program: str) -> list[str]:
    (folder / "engine.py").write_text(HEAD + program, encoding="utf-8")
    return [one.code for one in run((str(folder),)).findings]


def _imported(program: str, patch: pytest.MonkeyPatch) -> str:
    """What importing the program refuses, every contract complete; empty for nothing."""
    module = ModuleType("engine_under_test")
    patch.setitem(sys.modules, module.__name__, module)
    try:
        exec(compile(HEAD + program, "engine.py", "exec", dont_inherit=True), vars(module))
        for value in list(vars(module).values()):
            inside = vars(value).values() if isinstance(value, type) else [value]
            for declared in filter(None, map(contract_of, inside)):
                assert declared.spec
    except ContractTextError as error:
        return str(error).partition(" ")[0]
    except TypeError:  # the arguments of a mark
        return "SHP101"
    return ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_decorator_refuses_is_reported(name: str, tmp_path: Path, monkeypatch) -> None:
    program, code = REFUSED[name]
    assert _imported(program, monkeypatch) == code
    assert _linted(tmp_path, program) == [code]


@pytest.mark.parametrize("name", HELD)
def test_what_the_decorator_takes_is_clean(name: str, tmp_path: Path, monkeypatch) -> None:
    assert _imported(HELD[name], monkeypatch) == ""
    assert _linted(tmp_path, HELD[name]) == []


def test_a_typo_comes_with_the_names_it_may_mean(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(HEAD + REFUSED["typo"][0], encoding="utf-8")
    (finding,) = run((str(tmp_path),)).findings
    assert "did you mean draft_hidden?" in finding.message
    place = finding.primary
    assert place is not None
    text = (tmp_path / "engine.py").read_text().splitlines()[place.line - 1]
    assert text[place.column - 1 :].startswith('"bs draft_hiden"')


USERS = METHOD.format("batch: Batch)") + METHOD.format("batch: Batch, y: Rows) -> Rows").replace(
    "Worker", "Other"
)


@pytest.mark.parametrize(
    "mark",
    ['ids("target"), ids("draft")', "3", 'indexes("bs", pad=1)', 'phase("a"), phase("b")'],
)
def test_a_fault_of_a_field_is_reported_once(mark: str, tmp_path: Path) -> None:
    carrier = CLASS.format(f"x: Annotated[Int64[Tensor, 'bs'], {mark}]\n    y: Rows")
    holder = "@carrier\n@dataclass\nclass Holder:\n    batch: Batch\n"
    assert _linted(tmp_path, carrier + holder + USERS) == ["SHP101"]
    (tmp_path / "user.py").write_text(f"{HEAD}\nfrom engine import Batch\n{USERS}")
    assert _linted(tmp_path, carrier) == ["SHP101"]


def test_a_fault_of_a_field_by_phase_is_reported_once(tmp_path: Path) -> None:
    carrier = CLASS.format("x: Annotated[Phases, indexes('bs')]\n    y: Rows")
    assert _linted(tmp_path, carrier + USERS) == ["SHP101"]


def test_a_fault_in_a_base_that_is_no_carrier_is_reported(tmp_path: Path) -> None:
    base = "@dataclass\nclass Start:\n    x: Annotated[Int64[Tensor, 'bs'], 3]\n    y: Rows\n"
    carrier = "@carrier\n@dataclass\nclass Batch(Start):\n    z: Rows\n"
    assert _linted(tmp_path, base + carrier + USERS) == ["SHP101"]


def test_a_contract_of_another_package_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(
        "from icontract import contract\nfrom jaxtyping import Float\nfrom torch import Tensor\n"
        "@contract\ndef f(x: Float[Tensor, '... flavour']): ...\n"
    )
    assert not run((str(tmp_path),)).findings


OPEN = {
    "a class from outside": "from elsewhere import Thing\n"
    + METHOD.format('x: Thing, y: Float[Tensor, "tokens"])'),
    "a made alias": 'from typing import NewType\nT = NewType("T", Tensor)\n'
    + METHOD.format('x: T, y: Float[Tensor, "tokens"])'),
    "a text that is computed": 'N = "bs"\n' + METHOD.format("x: Float[Tensor, N], y: Rows)"),
    "a mark that is computed": 'AXIS = "bs topk"\n' + MARKED.format("indexes(AXIS)"),
    "a mark with arguments from elsewhere": "MORE = {}\n"
    + MARKED.format('indexes("bs", **MORE), ids(*MORE)'),
    "names in a loop": "for name in NAMES:\n    shapecheck.declare(name, owner='draft')\n"
    + METHOD.format('x: Float[Tensor, "bs flavour"], y: Rows)'),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_source_does_not_tell_is_left_open(name: str, tmp_path: Path) -> None:
    assert _linted(tmp_path, OPEN[name]) == []


def test_names_are_declared_anywhere_in_what_is_imported(tmp_path: Path) -> None:
    package = tmp_path / "engine"
    package.mkdir()
    (package / "__init__.py").write_text("from engine import names\n")
    (package / "names.py").write_text(
        "from shapecheck import declare as add\nadd('flavour', owner='batch')\n"
    )
    program = METHOD.format('x: Float[Tensor, "flavour topk"], y: Rows) -> Rows')
    (package / "worker.py").write_text(HEAD + program)
    found = [(one.code, one.message) for one in run((str(package / "worker.py"),)).findings]
    assert [code for code, _ in found] == ["SHP103"]
    assert "'flavour' occurs only in argument x" in found[0][1]
