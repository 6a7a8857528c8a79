"""Facts of two parts as one: what either saw is there, as the first of them saw it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from shapecheck.diagnostics.model import Span
from shapecheck.static.codec import FACTS, decode, encode
from shapecheck.static.facts import Facts, Write
from shapecheck.static.report import run
from shapecheck.static.values import Tensor

SPAN = Span(path="a.py", line=3)


def _one(name: str) -> Facts:
    """Facts with one entry in one field."""
    facts = Facts()
    held = getattr(facts, name)
    if name == "field_writes":
        held["C.x"] = [Write(tensor=Tensor(), span=SPAN, literal=True)]
    elif name == "formulae":
        held["C", "n"] = {SPAN: True}
    elif isinstance(held, dict):
        held[SPAN] = True
    elif isinstance(held, set):
        held.add((SPAN, "C"))
    elif isinstance(held, list):
        held.append(SPAN)
    else:
        setattr(facts, name, 1)
    return facts


@pytest.mark.parametrize("name", [one.name for one in fields(Facts)])
def test_every_kind_of_fact_is_added_sent_and_moved(name: str) -> None:
    both = Facts()
    assert not both
    later = _one(name)
    both.add(later)
    assert getattr(both, name) == getattr(later, name)
    back = decode(encode(later), FACTS)
    assert isinstance(back, Facts)
    assert getattr(back, name) == getattr(later, name)
    moved = decode(encode(later), FACTS, lambda _path, line: line + 4)
    assert isinstance(moved, Facts)
    assert "line=3" not in str(getattr(moved, name))


def test_two_sides_that_compute_one_name_are_both_known() -> None:
    other = Span(path="b.py", line=9)
    first, later = _one("formulae"), _one("formulae")
    later.formulae = {("C", "n"): {other: True}}  # type: ignore[dict-item]  # any key will do
    first.add(later)
    assert set(first.formulae["C", "n"]) == {SPAN, other}


def test_a_fact_of_both_is_as_the_first_saw_it() -> None:
    first, later = Facts(), Facts()
    first.joined["x"], later.joined["x"] = SPAN, Span(path="b.py", line=9)
    first.add(later)
    assert first.joined == {"x": SPAN}


def test_functions_of_one_name_are_counted_each(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        "import torch\n\n\ndef size(draft_config):\n    return draft_config.hidden_size\n\n\n"
        "def size(draft_config):\n    return torch.zeros(draft_config.hidden_size)\n"
    )
    assert run((str(file),)).summary()["functions"] == 2
