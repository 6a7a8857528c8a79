"""What a call leaves that is not followed to its end is unknown, never what stood there before."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.static.machine import MAX_DEPTH, ROOT_BUDGET
from shapecheck.static.report import run

LONG = "\n".join(f"        n.note({number})" for number in range(ROOT_BUDGET + 1))
HEAD = """import torch


class W:
    def __init__(self, draft_config, target_config, n):
        self.draft_config = draft_config
        self.target_config = target_config

    def step(self, n):
        self.buffer = torch.zeros(n, self.draft_config.hidden_size)
        self.first(n)
        out = torch.zeros(n, self.target_config.hidden_size)
        out.copy_(self.buffer)

"""
STORES = "        self.buffer = torch.zeros(n, self.target_config.hidden_size)\n"
BODIES = {
    "too long": f"    def first(self, n):\n{LONG}\n{STORES}",
    "long in a part of it": f"    def first(self, n):\n        with n:\n    {LONG}\n{STORES}",
    "too deep": "    def first(self, n):\n        self.m1(n)\n\n"
    + "".join(
        f"    def m{depth}(self, n):\n        self.m{depth + 1}(n)\n\n"
        for depth in range(1, MAX_DEPTH)
    )
    + f"    def m{MAX_DEPTH}(self, n):\n{STORES}",
    "by a function": "    def first(self, n):\n        widen(self, n)\n\n\ndef widen(w, n):\n"
    + LONG.replace("        ", "    ")
    + "\n    w.buffer = torch.zeros(n, w.target_config.hidden_size)\n",
}
GENERATOR = f"""import torch


def states(n, draft_config, target_config):
        yield torch.zeros(n, draft_config.hidden_size)
{LONG}
        yield torch.zeros(n, target_config.hidden_size)


def step(n, draft_config, target_config):
    out = torch.zeros(n, target_config.hidden_size)
    *_, last = states(n, draft_config, target_config)
    for last in states(n, draft_config, target_config):
        pass
    out.copy_(last)
"""
ENDLESS = f"""import torch


def wait(n, draft_config, target_config):
    while True:
        if n.small():
            return torch.zeros(n, draft_config.hidden_size)
{LONG}
        return torch.zeros(n, target_config.hidden_size)


def step(n, draft_config, target_config):
    out = torch.zeros(n, target_config.hidden_size)
    out.copy_(wait(n, draft_config, target_config))
"""
RECURSIVE = """import torch


class W:
    def __init__(self, draft_config, target_config, n):
        self.draft_config = draft_config
        self.target_config = target_config

    def step(self, n, again=True):
        self.buffer = torch.zeros(n, self.draft_config.hidden_size)
        if again:
            self.step(n - 1, False)
            out = torch.zeros(n, self.target_config.hidden_size)
            out.copy_(self.buffer)
        self.buffer = torch.zeros(n, self.target_config.hidden_size)
"""
PROGRAMS = {
    **{name: HEAD + body for name, body in BODIES.items()},
    "a generator": GENERATOR,
    "again": RECURSIVE,
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_call_that_is_cut_short_leaves_nothing_stale(text: str, tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(text)
    assert not run((str(tmp_path),)).findings


@pytest.mark.parametrize("name", ["too deep", "too long"])
def test_a_field_that_it_does_not_store_is_what_it_was(name: str, tmp_path: Path) -> None:
    other = (HEAD + BODIES[name]).replace(STORES, STORES.replace("buffer", "other"))
    (tmp_path / "engine.py").write_text(other)
    assert {one.code for one in run((str(tmp_path),)).findings} == {"SHP301"}


def test_what_it_would_have_returned_behind_the_cut_counts_too(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(ENDLESS)
    (found,) = run((str(tmp_path),)).findings
    assert "when" in [note.label for note in found.notes]
