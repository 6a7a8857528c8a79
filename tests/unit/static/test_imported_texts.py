"""What an imported file says by its text alone is heard, once, whoever imports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.static import analyse
from shapecheck.static.entries import read_entries
from shapecheck.static.facts import Facts
from shapecheck.static.report import Inputs, Report, run

KEYS = """class Graphs:
    def capture(self, count):
        self.keys.add((count, count, True))

    def find(self, count):
        return (count, count // self.width, True) in self.keys
"""
CONTRACTS = """from jaxtyping import Float
from shapecheck import contract
from torch import Tensor


@contract
def hidden(x: Float[Tensor, "bs flavour"], y: Float[Tensor, "bs topk"]):
    return x


def shared():
    pass


@contract
def shared(x: Float[Tensor, "topk flavour"], y: Float[Tensor, "topk"]):
    return x
"""
CALLED = """from jaxtyping import Float
from shapecheck import contract
from torch import Tensor


@contract
def projected(rows: Float[Tensor, "tokens draft_hidden"]) -> Float[Tensor, "tokens target_hidden"]:
    return load(rows)
"""
CALLER = """import torch
from engine.said import projected


def given(target_config, tokens: int):
    return projected(torch.zeros(tokens, target_config.hidden_size))


def returned(draft_config, tokens: int):
    buffer = torch.zeros(tokens, draft_config.hidden_size)
    buffer.copy_(projected(buffer))
"""
USER = """import torch
from engine.said import {name}


def use_{number}(draft_config):
    return torch.zeros({name}, draft_config.hidden_size)
"""


def _package(root: Path, text: str, name: str) -> Path:
    """Two entries that import a file which is none and says something."""
    folder = root / "engine"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "said.py").write_text(text)
    for number in (1, 2):
        (folder / f"user{number}.py").write_text(USER.format(name=name, number=number))
    return folder


def _facts(package: Path, *names: str) -> Facts:
    entries = read_entries(
        package.parent, [package / name for name in names], given={}, excluded=lambda _: False
    )
    return analyse.analyse(entries).units.facts()


@pytest.mark.parametrize("many_lines", [4_000, 0], ids=["one part", "two parts"])
@pytest.mark.parametrize(
    ("text", "name"), [(KEYS, "Graphs"), (CONTRACTS, "hidden")], ids=["keys", "contracts"]
)
def test_an_imported_text_says_once_what_it_says_as_an_entry(
    text: str, name: str, many_lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = _package(tmp_path, text, name)
    if text is KEYS:  # no entry by itself
        (package / "entry.py").write_text(f"# draft hidden\n{text}")
        own = _facts(package, "entry.py")
        assert len(own.keys) == 1
    else:
        own = _facts(package, "said.py")
        assert len(own.contract_faults) == 2
    monkeypatch.setattr(analyse, "_MANY_LINES", many_lines)
    found = _facts(package, "user1.py", "user2.py", "said.py")
    assert [one.whole for one in found.keys.values()] == [one.whole for one in own.keys.values()]
    assert found.contract_faults == own.contract_faults
    assert found.shape_texts == own.shape_texts


@pytest.mark.parametrize(
    "edit",
    [
        ("(count, count, True)", "(count, count + 1, True)"),
        ("(count, count, True)", "(count, count // self.width, True)"),
        ("        self", "        one = 1\n        self"),
    ],
)
def test_an_edit_of_an_imported_body_that_nobody_calls_is_heard(
    edit: tuple[str, str], tmp_path: Path
) -> None:
    package = _package(tmp_path, KEYS, "Graphs")
    said, cache = package / "said.py", tmp_path / "cache"

    def cached() -> Report:
        return run((str(package),), inputs=Inputs(cache=lambda _root: cache))

    assert [one.code for one in cached().findings] == ["SHP403"]
    for old, new in (edit, edit[::-1]):
        said.write_text(said.read_text().replace(old, new, 1))
        assert cached().findings == run((str(package),)).findings


@pytest.mark.parametrize("many_lines", [4_000, 0], ids=["one part", "two parts"])
def test_a_text_speaks_whether_or_not_an_edit_leaves_it_without_a_user(
    many_lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyse, "_MANY_LINES", many_lines)
    package, cache = _package(tmp_path, KEYS, "Graphs"), tmp_path / "cache"

    def cached() -> Report:
        return run((str(package),), inputs=Inputs(cache=lambda _root: cache))

    before = cached().findings
    assert [one.code for one in before] == ["SHP403"]
    for number in (1, 2):
        user = package / f"user{number}.py"
        user.write_text(user.read_text().replace("zeros(Graphs", "zeros(4"))
        assert cached().findings == run((str(package),)).findings == before


def test_the_contract_of_an_imported_file_is_held_to_and_relied_on_at_calls(tmp_path: Path) -> None:
    package = _package(tmp_path, CALLED, "projected")
    caller = package / "caller.py"
    caller.write_text(CALLER)
    found = run((str(caller),)).findings
    assert [(one.code, one.primary and one.primary.line) for one in found] == [
        ("SHP201", 6),
        ("SHP301", 10),
    ]
    whole = run((str(package),)).findings
    assert found == tuple(one for one in whole if one.code != "SHP103")
