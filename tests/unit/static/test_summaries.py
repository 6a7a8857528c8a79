"""A call that is remembered says the same to everybody, whoever asked for it first."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.static.report import run
from tests.unit.static.edited import Again, edit, engine, shown, spied, with_cache

SIZES = """import torch


def draft_sizes(args):
    return args.draft_config.hidden_size, args.target_config.hidden_size


"""
DEEP = """def make(n, w):
    return raw(n, w)


def raw(n, w):
    return torch.zeros(n, w)


""" + "".join(
    f"def d{depth}(n, w, draft_hidden):\n    return "
    + (f"d{depth + 1}(n, w, draft_hidden)" if depth < 5 else "make(n, w)")
    + "\n\n\n"
    for depth in range(1, 6)
)
CIRCLE = """def even(n, w):
    if n.small:
        return odd(n.half, w)
    return torch.zeros(1, w)


def odd(n, w):
    if n.small:
        return even(n.half, w)
    return None


"""
ORDERS = {
    "deep and not": (
        DEEP,
        "def shallow(n, args, draft_hidden):\n    d, t = draft_sizes(args)\n"
        "    make(8, d)\n    raw(8, d)\n",
        "def deep(n, args, draft_hidden):\n    d, t = draft_sizes(args)\n"
        "    torch.zeros(n, t).copy_(d1(8, d, 1))\n",
    ),
    "into a circle at either end": (
        CIRCLE,
        "def one(n, args, draft_hidden):\n    d, t = draft_sizes(args)\n"
        "    torch.zeros(n, t).copy_(even(8, d))\n",
        "def two(n, args, draft_hidden):\n    d, t = draft_sizes(args)\n"
        "    torch.zeros(n, t).copy_(odd(8, d))\n",
    ),
}


def _said(findings: tuple[Diagnostic, ...]) -> list[tuple[str, str]]:
    return sorted((one.code, one.message) for one in findings)


@pytest.mark.parametrize("parts", ORDERS.values(), ids=ORDERS)
def test_the_order_of_those_that_call_does_not_matter(
    parts: tuple[str, str, str], tmp_path: Path
) -> None:
    helpers, *callers = parts
    said: list[list[tuple[str, str]]] = []
    for order in permutations(callers):
        (tmp_path / "engine.py").write_text(SIZES + helpers + "\n\n".join(order))
        said.append(_said(run((str(tmp_path),)).findings))
    assert said[0] == said[1]


TWO = (
    SIZES
    + """def mix(n, d, t):
    torch.zeros(n, t).copy_(torch.zeros(n, d))


def remembered(args):
    d, t = draft_sizes(args)
    mix(8, d, t)


def first_draft(args, n, hidden):
    remembered(args)


def second_draft(args, n, hidden):
    remembered(args)
"""
)


def test_the_chain_is_that_of_the_one_that_asks(tmp_path: Path) -> None:
    text = SIZES + (
        "def make(n, d):\n    return torch.zeros(n, d)\n\n\n"
        "def first_draft(args, hidden):\n    d, t = draft_sizes(args)\n    make(8, d)\n\n\n"
        "def second_draft(args, hidden):\n    d, t = draft_sizes(args)\n"
        "    torch.zeros(8, t).copy_(make(8, d))\n"
    )
    (tmp_path / "engine.py").write_text(text)
    (found,) = run((str(tmp_path),)).findings
    own = text.splitlines().index("def second_draft(args, hidden):") + 1
    passed = [note.span for note in found.notes if "passed" in note.label]
    assert passed
    assert all(span is not None and span.line > own for span in passed)


def test_an_object_that_is_made_in_a_call_is_another_one_for_each(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(
        "import torch\n\n\nclass Holder:\n    def __init__(self, k):\n        self.k = k\n\n\n"
        "def make(k):\n    return Holder(k)\n\n\n"
        "def two(draft_config, target_config, n):\n    one, other = make(8), make(8)\n"
        "    one.h = torch.zeros(n, draft_config.hidden_size)\n"
        "    other.h = torch.zeros(n, target_config.hidden_size)\n"
        "    torch.zeros(n, draft_config.hidden_size).copy_(one.h)\n"
    )
    assert not run((str(tmp_path),)).findings


def test_what_the_first_caller_saw_the_next_one_sees_when_it_calls_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: Again = spied(monkeypatch)
    package = engine(tmp_path, {"a.py": TWO})
    lint = with_cache(package)
    assert {one.code for one in lint().findings} == {"SHP301"}
    edit(package, ("a.py", "    remembered(args)\n", "    print(n)\n"))
    assert shown(lint()) == shown(run((str(package),)))
    assert again
