"""After an edit of bodies only what rests on them is redone; the report is that of a new run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shapecheck.static.codec import FACTS, CodecError, decode, encode
from shapecheck.static.edits import compare
from shapecheck.static.prefilter import weight
from shapecheck.static.report import Report, run
from tests.unit.static.edited import Again, Edit, edit, engine, shown, spied, with_cache

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
    return engine(tmp_path, {"worker.py": WORKER, "pool.py": POOL})


@pytest.fixture
def cached(package: Path) -> Callable[[], Report]:
    return with_cache(package)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Again:
    return spied(monkeypatch)


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_the_report_after_an_edit_is_that_of_a_new_run(
    change: Edit, package: Path, cached: Callable[[], Report]
) -> None:
    assert {one.code for one in cached().findings} == {"SHP301"}
    edit(package, change)
    assert shown(cached()) == shown(run((str(package),)))
    assert shown(cached()) == shown(run((str(package),)))


def test_edits_one_after_another_are_all_seen(package: Path, cached: Callable[[], Report]) -> None:
    cached()
    for name in ("more lines before what is found", "a function whose result is remembered"):
        edit(package, EDITS[name])
        cached()
    edit(package, EDITS["a constructor that a field comes from"])
    assert shown(cached()) == shown(run((str(package),)))


def test_a_file_that_cannot_be_read_is_not_seen_after_an_edit_elsewhere_either(
    package: Path, cached: Callable[[], Report]
) -> None:
    (package / "broken.py").write_text(
        "import torch\n\n\ndef draft_hidden(config):\n    return config.hidden_size\n\n\ndef a(:\n"
    )
    edit(package, ("worker.py", "import torch", "import torch\nfrom engine import broken"))
    edit(package, ("worker.py", "return half(tokens)", "return broken.draft_hidden(tokens)"))
    assert {one.code for one in cached().findings} == {"SHP301", "SHP903"}
    edit(package, ("worker.py", "count // 2", "count // 4"))
    assert shown(cached()) == shown(run((str(package),)))


def test_only_what_rests_on_a_body_is_redone(
    package: Path, cached: Callable[[], Report], again: Again
) -> None:
    cached()
    edit(package, EDITS["a constructor that a field comes from"])
    cached()
    edit(package, EDITS["a function inside a function"])
    cached()
    first, second = ({name for _, name, _ in units} for units, _ in again)
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
    edit(package, EDITS["the body that stores a field"])
    assert shown(cached()) == shown(run((str(package),)))


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
    edit = compare(NODE, NODE.replace(old, new), path="node.py", weigh=weight)
    assert (edit is not None) is holds


def test_the_evidence_of_an_owner_is_what_is_written_where_a_size_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: Again = spied(monkeypatch)
    text = (
        "import torch\n\n\nclass Args:\n    def __init__(self, target_config, draft_config):\n"
        "        self.target_config = Config(target_config)\n"
        "        self.draft_config = Config(draft_config)\n\n\n"
        "class Config:\n    def __init__(self, path):\n        self.hidden_size = path\n\n\n"
        "class Worker:\n    def __init__(self, args: Args):\n        self.args = args\n\n"
        "    def first(self, n):\n        return self.args.draft_config.hidden_size\n\n"
        "    def second(self, n):\n"
        "        out = torch.zeros(n, self.args.target_config.hidden_size)\n"
        "        out.copy_(torch.zeros(n, self.args.draft_config.hidden_size))\n"
    )
    package = engine(tmp_path, {"worker.py": text})
    lint = with_cache(package)
    assert len(lint().findings) == 1
    edit(package, ("worker.py", "        out = torch", "        print(n)\n        out = torch"))
    assert shown(lint()) == shown(run((str(package),)))
    assert again
