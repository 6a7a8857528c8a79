"""The thirteen kinds of size bug, each with its fixed twin: which tier sees which.

A document has three blocks: the bug, the fixed twin, and `run(t)`, which drives either under trace.
A line that trace has to report ends in `# trace: CODE`, one for lint in `# error: CODE`; the fixed
twin has to be clean.
"""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from shapecheck.diagnostics import Severity
from shapecheck.symbolic import Report
from shapecheck.symbolic.sweep import Run, sweep

HERE = Path(__file__).parent
KINDS = 13
_BLOCK = re.compile(r"^## (?P<role>\w+)\n+```python (?P<file>\S+)\n(?P<code>.*?)^```$", re.M | re.S)
_MARK = re.compile(r"# trace: (?P<code>SHP\d+)")
_LINT = re.compile(r"# error: (?P<code>SHP\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One document: the bug, its twin and what drives them."""

    name: str
    bug: str
    fixed: str
    run: str

    def expected(self) -> set[tuple[int, str]]:
        """The lines of the bug that trace has to report."""
        lines = enumerate(self.bug.splitlines(), 1)
        return {(number, mark["code"]) for number, line in lines if (mark := _MARK.search(line))}


def read(document: Path) -> Kind:
    """The blocks of a document."""
    blocks = {match["role"]: match["code"] for match in _BLOCK.finditer(document.read_text())}
    return Kind(name=document.stem, **blocks)


KIND = [read(document) for document in sorted(HERE.glob("*.md"))]


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """Trace `run(t)` over a worker's text."""

    def trace_it(kind: Kind, worker: str) -> Report:
        for name, text in (("worker.py", worker), ("run.py", kind.run)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        for name in ("worker", "run"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        subject = importlib.import_module("run").run
        return sweep(subject, runs=(Run(),), within=("worker",))

    return trace_it


def test_every_kind_is_here():
    assert len(KIND) == KINDS


@pytest.mark.parametrize("kind", KIND, ids=lambda kind: kind.name)
def test_trace_sees_the_bug_at_its_line(kind, traced):
    report = traced(kind, kind.bug)
    found = {(item.primary.line, item.code) for item in report.findings}
    assert found == kind.expected(), report.text()
    assert report.exit_code == 1


@pytest.mark.parametrize("kind", KIND, ids=lambda kind: kind.name)
def test_the_fixed_twin_is_clean(kind, traced):
    report = traced(kind, kind.fixed)
    errors = [item for item in report.findings if item.severity is Severity.ERROR]
    assert errors == []
    assert report.vacuous is None, report.text()


def test_the_documented_table_says_what_the_marks_say():
    page = (HERE.parents[2] / "docs" / "trace.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \|$", page, flags=re.M)
    assert {name: (trace, lint) for name, trace, lint in rows} == {
        kind.name: (_first(_MARK, kind.bug), _first(_LINT, kind.bug)) for kind in KIND
    }


def _first(mark: re.Pattern[str], text: str) -> str:
    found = mark.search(text)
    return found["code"] if found else "-"
