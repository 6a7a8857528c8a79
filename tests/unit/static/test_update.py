"""After an edit of bodies only what rests on them is redone; the report is that of a new run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from shapecheck.static import update
from shapecheck.static.codec import FACTS, CodecError, decode, encode
from shapecheck.static.edits import compare
from shapecheck.static.report import Inputs, Report, run
from shapecheck.static.units import UnitKey

WORKER = """import torch
from engine.pool import Pool, rows


class Worker:
    def __init__(self, target_config, draft_config):
        self.pool = Pool(draft_config)
        self.taken = torch.zeros(4, target_config.hidden_size)

    def fill(self):
        self.pool.buffer.copy_(self.taken)

    def other(self, draft_config, target_hidden_states):
        made = torch.zeros(rows(4), draft_config.hidden_size)
        made.copy_(target_hidden_states)

    def idle(self, tokens):
        def half(count):
            return count // 2

        return half(tokens)
"""
POOL = """import torch


def rows(number):
    return number


class Pool:
    def __init__(self, draft_config):
        self.buffer = torch.zeros(4, draft_config.hidden_size)
"""
EDITS = {
    "a constructor that a field comes from": ("pool.py", "draft_config.hidden_size", "8"),
    "the body where the sizes meet": ("worker.py", "self.taken)", "self.taken[:2])"),
    "the body that stores a field": ("worker.py", "target_config.hidden_size", "8"),
    "a function whose result is remembered": ("pool.py", "return number", "return number + 1"),
    "a function inside a function": ("worker.py", "count // 2", "count // 4"),
    "more lines before what is found": (
        "worker.py",
        "        self.pool.b",
        "\n        self.pool.b",
    ),
    "other names": ("worker.py", "def idle", "def lazy"),
    "another field": ("worker.py", "self.taken = ", "self.taken = self.more = "),
    "another import in a body": ("worker.py", "return half", "import os\n        return half"),
    "a file that cannot be read": ("pool.py", "return number", "return (number"),
    "a value of the module": ("pool.py", "def rows", "LIMIT = 4\n\n\ndef rows"),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "engine"
    folder.mkdir()
    for name, text in {"__init__.py": "", "worker.py": WORKER, "pool.py": POOL}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def cached(package: Path, tmp_path: Path) -> Callable[[], Report]:
    folder = tmp_path / "cache"
    return lambda: run((str(package),), inputs=Inputs(cache=lambda _root: folder))


@pytest.fixture
def redone(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[UnitKey]]:
    """The units of each run that was brought up to date."""
    found: list[frozenset[UnitKey]] = []
    analyse = update.analyse

    def spy(*arguments: object, only: frozenset[UnitKey]) -> object:
        found.append(only)
        return analyse(*arguments, only=only)  # type: ignore[arg-type]  # handed through

    monkeypatch.setattr(update, "analyse", spy)
    monkeypatch.setattr(update, "_MOST", 1.0)
    return found


def _shown(report: Report) -> tuple[object, Mapping[str, object]]:
    counts = report.summary()
    return report.findings, {k: v for k, v in counts.items() if k not in ("seconds", "recalled")}


def _edit(package: Path, edit: tuple[str, str, str]) -> None:
    file, old, new = edit
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_report_after_an_edit_is_that_of_a_new_run(
    edit: tuple[str, str, str], package: Path, cached: Callable[[], Report]
) -> None:
    assert {one.code for one in cached().findings} == {"SHP301"}
    _edit(package, edit)
    assert _shown(cached()) == _shown(run((str(package),)))
    assert _shown(cached()) == _shown(run((str(package),)))


def test_edits_one_after_another_are_all_seen(package: Path, cached: Callable[[], Report]) -> None:
    cached()
    for name in ("more lines before what is found", "a function whose result is remembered"):
        _edit(package, EDITS[name])
        cached()
    _edit(package, EDITS["a constructor that a field comes from"])
    assert _shown(cached()) == _shown(run((str(package),)))


def test_only_what_rests_on_a_body_is_redone(
    package: Path, cached: Callable[[], Report], redone: list[frozenset[UnitKey]]
) -> None:
    cached()
    _edit(package, EDITS["a constructor that a field comes from"])
    cached()
    _edit(package, EDITS["a function inside a function"])
    cached()
    first, second = ({name for _, name, _ in units} for units in redone)
    assert "Worker.fill" in first
    assert "Worker.idle" not in first
    assert second == {"Worker.idle", ""}  # and what the text says by itself


@pytest.mark.parametrize("damage", [b"", b"no checksum\nnor content", b"\x80\x04."])
def test_a_damaged_analysis_is_found_out_anew(
    damage: bytes, package: Path, tmp_path: Path, cached: Callable[[], Report]
) -> None:
    cached()
    (kept,) = (tmp_path / "cache").glob("*.units.z")
    kept.write_bytes(damage)
    _edit(package, EDITS["the body that stores a field"])
    assert _shown(cached()) == _shown(run((str(package),)))


def test_bytes_make_nothing_but_plain_data() -> None:
    with pytest.raises(CodecError, match="no plain data"):
        decode(encode(Path("x")), FACTS)
    with pytest.raises(CodecError):
        decode(b"cos\nsystem\n(S'true'\ntR.", FACTS)


NODE = """class Node:
    def __init__(self, depth):
        self.rows = depth
        self.next = None

    def twin(self):
        return Node(self.rows)
"""


@pytest.mark.parametrize(
    ("old", "new", "holds"),
    [
        ("self.next = None", "self.next = Node(depth)", False),
        ("self.rows = depth", "self.rows = depth + 1", True),
        ("return Node(self.rows)", "return Node(2 * self.rows)", True),
    ],
)
def test_a_constructor_that_makes_its_own_class_is_found_out_anew(
    old: str, new: str, holds: bool
) -> None:
    edit = compare(NODE, NODE.replace(old, new), path="node.py", is_root=lambda _: False)
    assert (edit is not None) is holds
