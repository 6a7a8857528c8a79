"""The literate cases: sections of Markdown with Python blocks and the findings they expect.

A section is one program. A line that has to be reported ends in `# error: CODE`. A section that
shows a bug which lint cannot see says `Not seen by lint, because ...` instead, and fails on the day
that lint reports something there. A section with a `diff` block is the program of the section
before it with the lines of the diff exchanged, and has to be clean. A section with a `pack.toml`
is linted with the pack in that file's folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_HEADING = re.compile(r"^#{2,}\s+(?P<title>.+)$")
_FENCE = re.compile(r"^```(?P<kind>python|diff|toml)(?:\s+(?P<path>[\w./-]+))?\s*$")
_EXPECTED = re.compile(r"\s*#\s*error:\s*(?P<codes>SHP\d+(?:\s*,\s*SHP\d+)*)")
_UNSEEN = "Not seen by lint, because "


@dataclass(slots=True)
class Case:
    """One section: its files, and the (path, line, code) that lint has to report."""

    name: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    unseen: bool = False
    is_fix: bool = False

    @property
    def packs(self) -> tuple[str, ...]:
        """The folders that hold a pack."""
        return tuple(str(Path(path).parent) for path in self.files if path.endswith("pack.toml"))

    @property
    def expected(self) -> set[tuple[str, int, str]]:
        """What the comments of the program announce."""
        return {
            (path, number, code.strip())
            for path, text in self.files.items()
            for number, line in enumerate(text.splitlines(), 1)
            if (match := _EXPECTED.search(line))
            for code in match["codes"].split(",")
        }


def read_cases(document: Path) -> list[Case]:
    """Every section of a document that has a Python or a diff block."""
    cases: list[Case] = []
    title, kind, path = document.stem, "", ""
    block: list[str] | None = None
    for line in document.read_text(encoding="utf-8").splitlines():
        if block is not None:
            if line.startswith("```"):
                _add(cases, f"{document.stem}: {title}", kind, path, block)
                block = None
            else:
                block.append(line)
        elif match := _HEADING.match(line):
            title = match["title"].strip()
        elif match := _FENCE.match(line):
            kind, path, block = match["kind"], match["path"] or "case.py", []
        elif line.startswith(_UNSEEN):
            assert cases, f"{document.name}: a verdict before any program"
            cases[-1].unseen = True
    return cases


def _add(cases: list[Case], name: str, kind: str, path: str, block: list[str]) -> None:
    if not cases or cases[-1].name != name:
        previous = cases[-1].files if cases else {}
        cases.append(Case(name))
        if kind == "diff":
            cases[-1].is_fix = True
            cases[-1].files = {key: _EXPECTED.sub("", text) for key, text in previous.items()}
    case = cases[-1]
    if kind == "diff":
        _exchange(case, block)
        return
    assert path not in case.files, f"{name}: two blocks for {path}"
    case.files[path] = "\n".join(block) + "\n"


def _exchange(case: Case, block: list[str]) -> None:
    """Apply a diff: each run of old lines (` ` and `-`) occurs exactly once in the program."""
    hunks: list[tuple[list[str], list[str]]] = [([], [])]
    last = ""
    for line in block:
        mark, text = line[:1], line[1:]
        assert mark in "+- ", f"{case.name}: a diff line starts with +, - or a space: {line!r}"
        if mark == "-" and last == "+":
            hunks.append(([], []))
        old, new = hunks[-1]
        if mark != "+":
            old.append(text)
        if mark != "-":
            new.append(text)
        last = mark
    for old, new in hunks:
        before, after = "\n".join(old) + "\n", "\n".join(new) + "\n"
        holders = [path for path, text in case.files.items() if before in text]
        found = sum(case.files[path].count(before) for path in holders)
        assert found == 1, f"{case.name}: {found} places for\n{before}"
        case.files[holders[0]] = case.files[holders[0]].replace(before, after)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    documents = sorted(Path(__file__).parent.rglob("*.md"))
    if "case" in metafunc.fixturenames:
        cases = [case for document in documents for case in read_cases(document)]
        metafunc.parametrize("case", cases, ids=[case.name for case in cases])
    if "wild_document" in metafunc.fixturenames:
        wild = [one for one in documents if one.parent.name == "wild"]
        metafunc.parametrize("wild_document", wild, ids=[one.stem for one in wild])
