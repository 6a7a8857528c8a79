"""What did not change is recalled and not interpreted again; the report is that of a new run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shapecheck.static import recall, update
from shapecheck.static.report import Report, run
from tests.unit.static.edited import Again, Edit, edit, engine, spied, with_cache

WORKER = """import torch
from engine.parts import Pair, Pool, Runner, sized


class Worker:
    def __init__(self, target_config, draft_config):
        self.runner = Runner(target_config)
        self.pool = Pool(draft_config, self.runner)
        self.taken = torch.zeros(4, target_config.hidden_size)
        self.step = lambda rows: rows
        self.spare = Runner(target_config)
        self.pair = Pair(self.taken, torch.zeros(4, draft_config.hidden_size))

    def retake(self, draft_config):
        self.taken = torch.zeros(4, draft_config.hidden_size)

    def fill(self):
        self.pool.buffer.copy_(self.taken)

    def refill(self):
        self.pool.buffer.copy_(self.pool.runner.output)

    def look(self):
        made = sized(8)
        self.seen = made.rows
        return self.seen

    def count(self):
        return self.step(4)

    def mix(self):
        return self.pair.both.shape
"""
PARTS = """import torch


class Runner:
    def __init__(self, target_config):
        self.output = torch.zeros(4, target_config.hidden_size)


class Pool:
    def __init__(self, draft_config, runner):
        self.runner = runner
        self.buffer = torch.zeros(4, draft_config.hidden_size)

    def grow(self, draft_config):
        self.buffer = torch.zeros(8, draft_config.hidden_size)


class Pair:
    def __init__(self, left, right):
        self.both = torch.cat([left, right])


class Sized:
    def __init__(self, rows):
        self.rows = rows


def sized(rows):
    return Sized(rows)
"""
EDITS = {
    "a reader of fields": ("worker.py", "copy_(self.taken)", "copy_(self.taken[:2])"),
    "one of two that give a field something": (
        "worker.py",
        "def retake(self, draft_config):\n        self.taken = torch.zeros(4, draft_",
        "def retake(self, draft_config):\n        self.taken = torch.zeros(4, target_",
    ),
    "the first of two that give a field something": (
        "worker.py",
        "self.taken = torch.zeros(4, target_config.hidden_size)\n        self.step",
        "self.taken = torch.zeros(4, 8)\n        self.step",
    ),
    "a constructor that had waited": ("parts.py", "(4, target_config.hidden_size)", "(4, 8)"),
    "a method that stores in what another class holds": ("parts.py", "zeros(8,", "zeros(9,"),
    "what an object is made of": ("worker.py", "Pool(draft_config,", "Pool(target_config,"),
    "a function whose result is remembered": ("parts.py", "Sized(rows)", "Sized(rows + 1)"),
    "who asks for what is remembered": ("worker.py", "sized(8)", "sized(9)"),
    "a closure that a field holds": ("worker.py", "lambda rows: rows", "lambda rows: rows + 1"),
    "who asks an object whose constructor waited": (
        "worker.py",
        "return self.step(4)",
        "return self.spare.output.copy_(self.pool.buffer)",
    ),
    "who asked first, so that a constructor ran": ("worker.py", "both.shape", "both[:2].shape"),
    "lines that move": ("parts.py", "self.output =", "moved = 1\n        self.output ="),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return engine(tmp_path, {"worker.py": WORKER, "parts.py": PARTS})


@pytest.fixture
def cached(package: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Report]:
    monkeypatch.setattr(update, "_MOST", 1.0)
    return with_cache(package)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Again:
    return spied(monkeypatch)


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_the_report_after_an_edit_is_that_of_a_new_run(
    change: Edit, package: Path, cached: Callable[[], Report]
) -> None:
    cached()
    edit(package, change)
    assert cached().findings == run((str(package),)).findings


def test_edits_one_after_another_are_all_seen(package: Path, cached: Callable[[], Report]) -> None:
    cached()
    for name in ("a reader of fields", "lines that move", "a constructor that had waited"):
        edit(package, EDITS[name])
        assert cached().findings == run((str(package),)).findings


def test_what_is_recalled_is_not_interpreted(
    package: Path, cached: Callable[[], Report], again: Again
) -> None:
    cached()
    edit(package, EDITS["a reader of fields"])
    cached()
    ((only, made),) = again
    assert {name for _, name, _ in only} == {"Worker.fill", ""}
    assert made.units.bases.keys() == only


def test_what_was_recalled_is_rested_on(
    package: Path, cached: Callable[[], Report], again: Again
) -> None:
    cached()
    edit(package, EDITS["a reader of fields"])
    cached()
    edit(package, EDITS["a method that stores in what another class holds"])
    edit(package, ("parts.py", "zeros(4, draft_config", "zeros(5, draft_config"))
    cached()
    (_, (only, _)) = again
    assert "Worker.fill" in {name for _, name, _ in only}


def test_what_cannot_be_recalled_is_interpreted(
    package: Path,
    cached: Callable[[], Report],
    again: Again,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forgets(*_: object) -> None:
        raise recall.RecallError("nothing is known")

    cached()
    edit(package, EDITS["a reader of fields"])
    monkeypatch.setattr(recall.Recalled, "ref", forgets)
    assert cached().findings == run((str(package),)).findings
    assert len(again) == 1


def test_an_object_that_nobody_asked_can_be_asked_after_an_edit(
    package: Path, cached: Callable[[], Report], again: Again
) -> None:
    cached()
    edit(package, EDITS["who asks an object whose constructor waited"])
    assert cached().findings == run((str(package),)).findings
    ((only, made),) = again
    assert {name for _, name, _ in only} == {"Worker.count", ""}
    assert made.units.bases.keys() == only


def test_what_a_constructor_saw_does_not_go_with_who_asked_first(
    package: Path, cached: Callable[[], Report], again: Again
) -> None:
    before = [one for one in cached().findings if "torch.cat" in one.message]
    edit(package, EDITS["who asked first, so that a constructor ran"])
    after = [one for one in cached().findings if "torch.cat" in one.message]
    assert len(before) == 1
    assert after == before
    assert len(again) == 1


GIVEN = """import torch


class Info:
    def __init__(self, h):
        self.h = h


class Draft:
    def __init__(self, n, target_config):
        self.info = Info(None)
        self.out = torch.zeros(n, target_config.hidden_size)

    def put_hidden(self, n, draft_config):
        self.info.h = torch.zeros(n, target_config.hidden_size)

    def use_hidden(self):
        self.out.copy_(self.info.h)
"""
STORE = "self.info.h = torch.zeros(n, target_"
FOREIGN: dict[str, tuple[str, Edit]] = {
    "what another object is given": (
        GIVEN,
        ("draft.py", STORE, STORE.replace("target", "draft")),
    ),
    "what another object is given for the first time": (
        GIVEN.replace(STORE, "given = torch.zeros(n, target_"),
        ("draft.py", "given = torch.zeros(n, target_", STORE.replace("target", "draft")),
    ),
    "what another object is given by a name": (
        GIVEN.replace(STORE, "given = torch.zeros(n, target_"),
        (
            "draft.py",
            "given = torch.zeros(n, target_config.hidden_size)",
            'setattr(self.info, "h", torch.zeros(n, draft_config.hidden_size))',
        ),
    ),
}


@pytest.mark.parametrize(("text", "change"), FOREIGN.values(), ids=FOREIGN)
def test_who_reads_a_field_that_another_stores_takes_part(
    text: str, change: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update, "_MOST", 1.0)
    package = engine(tmp_path, {"draft.py": text})
    lint = with_cache(package)
    assert not lint().findings
    edit(package, change)
    after = lint().findings
    assert [one.code for one in after] == ["SHP301"]
    assert after == run((str(package),)).findings


def test_a_recalled_object_is_followed_as_deep_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands = "".join(f"\n\ndef f{n}(bag):\n    return f{n + 1}(bag)\n" for n in range(1, 4))
    package = engine(
        tmp_path,
        {
            "worker.py": """import torch
from engine.bag import Bag, f1


class Worker:
    def __init__(self, target_config, draft_config):
        self.bag = Bag(draft_config)
        self.taken = torch.zeros(4, target_config.hidden_size)

    def fill(self):
        size = 1
        f1(self.bag).copy_(self.taken)
""",
            "bag.py": f"""import torch


class Bag:
    def __init__(self, draft_config):
        self.buffer = torch.zeros(4, draft_config.hidden_size)
{hands}

def f4(bag):
    return bag.buffer
""",
        },
    )
    monkeypatch.setattr(update, "_MOST", 1.0)
    cached = with_cache(package)
    assert {one.code for one in cached().findings} == {"SHP301"}
    edit(package, ("worker.py", "size = 1", "size = 2"))
    assert cached().findings == run((str(package),)).findings
