"""The literate cases: sections of Markdown with Python blocks and the findings they expect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_HEADING = re.compile(r"^#{2,}\s+(?P<title>.+)$")
_FENCE = re.compile(r"^```python(?:\s+(?P<path>[\w./-]+))?\s*$")
_EXPECTED = re.compile(r"#\s*error:\s*(?P<codes>SHP\d+(?:\s*,\s*SHP\d+)*)")


@dataclass(frozen=True, slots=True)
class Case:
    """One section: its files, and the (path, line, code) that lint has to report."""

    name: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    expected: set[tuple[str, int, str]] = field(default_factory=set[tuple[str, int, str]])


def read_cases(document: Path) -> list[Case]:
    """Every section of a document that has a Python block."""
    cases: list[Case] = []
    title, block, path = document.stem, None, ""
    for line in document.read_text(encoding="utf-8").splitlines():
        if block is not None:
            if line.startswith("```"):
                _add(cases[-1], path, block)
                block = None
            else:
                block.append(line)
        elif match := _HEADING.match(line):
            title = match["title"].strip()
        elif match := _FENCE.match(line):
            name = f"{document.stem}: {title}"
            if not cases or cases[-1].name != name:
                cases.append(Case(name))
            path, block = match["path"] or "case.py", []
    return cases


def _add(case: Case, path: str, block: list[str]) -> None:
    assert path not in case.files, f"{case.name}: two blocks for {path}"
    case.files[path] = "\n".join(block) + "\n"
    for number, line in enumerate(block, 1):
        if match := _EXPECTED.search(line):
            for code in match["codes"].split(","):
                case.expected.add((path, number, code.strip()))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        documents = sorted(Path(__file__).parent.rglob("*.md"))
        cases = [case for document in documents for case in read_cases(document)]
        metafunc.parametrize("case", cases, ids=[case.name for case in cases])
