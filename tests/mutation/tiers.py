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

# Kernels, and what measures the engine from outside: no mutant is in them, and none reaches them.
_APART = ("__pycache__", "bench", "kernels", "observe")
Lines = dict[str, list[int]]


def _use(root: Path, level: str) -> None:
    sys.path.insert(0, str(root))
    os.environ["SHAPECHECK"] = level
    settings.cache_clear()


def warm(root: Path) -> None:
    """What torch, sympy and triton load or work out on first use is there; no engine stays."""
    before = set(sys.modules)
    unchecked(root, {})
    trace(root, ["none"])
    lint(root)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "engine" or name.startswith("tests."):
            del sys.modules[name]
    sys.path.remove(str(root))
    sys.path_importer_cache.pop(str(root), None)


def lint(root: Path) -> list[str]:
    """The codes of what lint finds."""
    from shapecheck.static.report import run

    targets = [str(path) for path in sorted((root / "engine").iterdir()) if path.name not in _APART]
    return sorted(f"{one.code} {one.message}" for one in run(tuple(targets)).findings)


def cases() -> Mapping[str, Any]:
    """The traced engines, by the engine of the load run that runs the same lines.

    Those that differ most come first: a tree of two levels and one of three, chosen and drawn, a
    chain. Small numbers keep the loops short.
    """
    from tests.unit.engine.traced import Case

    short = {"bs": 3, "num_steps": 2, "num_draft_tokens": 3}
    return {
        "eagle3": Case(
            algorithm="eagle3",
            topk=2,
            graphs=True,
            layers=1,
            hints={"padded_bs": 6, "num_steps": 2},
        ),
        "eagle": Case(algorithm="eagle", topk=2),
        "eagle3 drawn": Case(algorithm="eagle3", topk=2, drafting="drawn", layers=1, hints=short),
        "standalone chain": Case(
            algorithm="standalone", drafting="drawn", graphs=True, hints={**short, "padded_bs": 6}
        ),
        "ngram": Case(algorithm="ngram", penalties=True, narrow=False),
        "eagle3 chain": Case(algorithm="eagle3", drafting="drawn", layers=1, hints=short),
        "none": Case(algorithm="none"),
    }


def trace(root: Path, names: list[str] | None = None) -> dict[str, object]:
    """What trace finds, in the first of these cases that shows anything; None means all."""
    _use(root, "off")
    from tests.unit.engine.traced import report_of

    stopped = ""
    for name in cases() if names is None else names:
        report = report_of(cases()[name], first=True)
        if report.findings:
            said = [f"{one.code} {one.message}" for one in report.findings]
            return {"found": [one.replace(f"{root}/", "") for one in said], "in": name}
        stopped = stopped or (report.stopped or "").replace(f"{root}/", "")
    return {"found": [], "stopped": stopped}


def load(root: Path, level: str) -> dict[str, str]:
    """What becomes of the load run at this level."""
    _use(root, level)
    from tests.mutation.load import outcomes

    return outcomes()


def unchecked(root: Path, expected: Mapping[str, Mapping[str, int]]) -> dict[str, object]:
    """How the load run ends when nothing is checked, its operations, what crosses as one hash, and
    whether a size or dtype is another than in the `expected` operations."""
    _use(root, "off")
    from tests.mutation.load import signatures

    ends: dict[str, str] = {}
    shapes: dict[str, dict[str, int]] = {}
    crossed: dict[str, str] = {}
    for name, said, digest, crossings in signatures():
        ends[name], shapes[name], crossed[name] = said, digest, crossings
    changes = any(_changes(shapes[name], expected.get(name, {}), ends[name]) for name in ends)
    return {"ends": ends, "shapes": shapes, "changes": changes, "crossed": crossed}


def _changes(found: Mapping[str, int], expected: Mapping[str, int], end: str) -> bool:
    """Whether a run has another size or dtype than expected.

    Operations that are left out while every other one sees what it saw gave their results the
    shape and dtype of what stands in for them. A run that ends early proves nothing.
    """
    if end != "done":
        return found != expected
    return any(count > expected.get(one, 0) for one, count in found.items())


def covered(root: Path) -> dict[str, Lines]:
    """For each traced case the engine's lines that the load run's engine of its name runs."""
    _use(root, "off")
    lines: dict[str, set[int]] = {}
    found: dict[str, Lines] = {}
    sys.settrace(_lines_into(lines, str(root / "engine") + os.sep))
    names = list(cases())
    from tests.mutation.load import run

    imported = {path: set(numbers) for path, numbers in lines.items()}
    for name in names:
        lines.clear()
        lines.update({path: set(numbers) for path, numbers in imported.items()})
        run(name)
        found[name] = {path: sorted(numbers) for path, numbers in lines.items()}
    sys.settrace(None)
    return found


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
