"""What each tier says of the engine in a folder; every function runs in a process of its own.

The engine is imported from that folder, so nothing of it may have been imported before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from shapecheck.config import settings

Lines = dict[str, list[int]]


def _use(root: Path, level: str) -> None:
    sys.path.insert(0, str(root))
    os.environ["SHAPECHECK"] = level
    settings.cache_clear()


def lint(root: Path) -> list[str]:
    """The codes of what lint finds."""
    from shapecheck.static.report import run

    return sorted(f"{one.code} {one.message}" for one in run((str(root / "engine"),)).findings)


def cases() -> Mapping[str, Any]:
    """The traced engines, those with the most names first; small numbers keep the loops short."""
    from tests.unit.engine.traced import Case

    small = {"bs": 3, "topk": 3, "num_draft_tokens": 3}
    every = (
        Case(algorithm="eagle3", topk=2, graphs=True, hints={"padded_bs": 6}),
        Case(algorithm="eagle3", topk=2, drafting="drawn", hints=small),
        Case(algorithm="ngram", penalties=True),
        Case(algorithm="standalone", drafting="drawn", graphs=True, hints={"padded_bs": 6}),
        Case(algorithm="eagle", topk=2),
        Case(algorithm="none"),
    )
    return {str(case): case for case in every}


def cases_names(root: Path) -> list[str]:
    """The names of the traced cases; asking imports the engine."""
    _use(root, "off")
    return list(cases())


def trace(root: Path, names: list[str]) -> dict[str, object]:
    """What trace finds, in the first of these cases that shows anything."""
    _use(root, "off")
    from tests.unit.engine.traced import report_of

    stopped = ""
    for name in names:
        report = report_of(cases()[name])
        if report.findings:
            said = [f"{one.code} {one.message}" for one in report.findings]
            return {"found": [one.replace(f"{root}/", "") for one in said], "in": name}
        stopped = stopped or report.stopped or ""
    return {"found": [], "stopped": stopped}


def run(root: Path, level: str) -> dict[str, str]:
    """What becomes of the load run at this level."""
    _use(root, level)
    from tests.mutation.load import outcomes

    return outcomes()


def unchecked(root: Path, expected: Mapping[str, str]) -> dict[str, object]:
    """Whether an operation has another shape or dtype than `expected`, and how the run ends."""
    _use(root, "off")
    from tests.mutation.load import outcomes, signatures

    # The first difference is enough.
    changes = any(expected[name] != found for name, found in signatures())
    return {"changes": changes, "ends": outcomes()}


def signature(root: Path) -> dict[str, str]:
    """Shapes and dtypes of the load run's operations, contracts off."""
    _use(root, "off")
    from tests.mutation.load import signatures

    return dict(signatures())


def covered(root: Path, name: str) -> Lines:
    """The engine's lines that run in this traced case, those of its import included."""
    lines: dict[str, set[int]] = {}
    sys.settrace(_lines_into(lines, str(root / "engine") + os.sep))
    trace(root, [name])
    sys.settrace(None)
    return {path: sorted(found) for path, found in lines.items()}


def _lines_into(lines: dict[str, set[int]], prefix: str) -> Callable[..., Any]:
    def local(frame: FrameType, event: str, _: object) -> Any:
        lines[frame.f_code.co_filename.removeprefix(prefix)].add(frame.f_lineno)
        return local

    def enter(frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(prefix):
            return None
        lines.setdefault(name.removeprefix(prefix), set()).add(frame.f_lineno)
        return local

    return enter
