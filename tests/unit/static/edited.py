"""A small engine that is linted with a cache, edited, and linted again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from shapecheck.static import update
from shapecheck.static.analysis import Analysis
from shapecheck.static.report import Inputs, Report, run
from shapecheck.static.units import UnitKey

Again = list[tuple[frozenset[UnitKey], Analysis]]
Edit = tuple[str, str, str]  # a file, a text in it, and what takes its place


def engine(folder: Path, files: Mapping[str, str]) -> Path:
    """The package `engine` in a folder, made of these files."""
    package = folder / "engine"
    package.mkdir()
    for name, text in {"__init__.py": "", **files}.items():
        (package / name).write_text(text)
    return package


def with_cache(package: Path) -> Callable[[], Report]:
    """Lints a package with a cache beside it."""
    folder = package.parent / "cache"
    return lambda: run((str(package),), inputs=Inputs(cache=lambda _root: folder))


def edit(package: Path, change: Edit) -> None:
    """Replace the first such text of a file."""
    file, old, new = change
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new, 1))


def shown(report: Report) -> tuple[object, Mapping[str, object]]:
    """Everything that a report says, but how long it took and whether it was recalled."""
    counts = report.summary()
    return report.findings, {k: v for k, v in counts.items() if k not in ("seconds", "recalled")}


def spied(monkeypatch: pytest.MonkeyPatch) -> Again:
    """The units that each run brings up to date, however many, and what it interprets for them."""
    found: Again = []
    analyse = update.analyse

    def spy(*arguments: object, **named: object) -> Analysis:
        made = analyse(*arguments, **named)  # type: ignore[arg-type]  # handed through
        found.append((named["only"], made))  # type: ignore[arg-type]  # it is always given
        return made

    monkeypatch.setattr(update, "analyse", spy)
    monkeypatch.setattr(update, "_MOST", 1.0)
    return found
