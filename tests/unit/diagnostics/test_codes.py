"""The catalogue of codes and what the source says of them are one thing."""

from __future__ import annotations

import re
from pathlib import Path

from shapecheck.diagnostics.codes import NAMES

PACKAGE = Path(__file__).parents[3] / "shapecheck"
SOURCES = {path: path.read_text() for path in PACKAGE.rglob("*.py")}


def test_every_code_in_the_source_has_a_name() -> None:
    said = {code for text in SOURCES.values() for code in re.findall(r"\bSHP\d{3}\b", text)}
    assert said <= NAMES.keys()


def test_a_code_is_followed_by_its_own_name_wherever_both_are_written() -> None:
    wrong = [
        f"{path.name}: {code} {name}"
        for path, text in SOURCES.items()
        for code, name in re.findall(r"\b(SHP\d{3}) ([a-z]+-[a-z-]+)\b", text)
        if NAMES[code] != name
    ]
    assert wrong == []


def test_names_are_distinct() -> None:
    assert len(set(NAMES.values())) == len(NAMES)
