"""One lint run over parts of releases, remembered: several cases share a release."""

from __future__ import annotations

import inspect
from functools import cache

from shapecheck.static.report import Report, run


@cache
def lint(targets: tuple[str, ...], *, packs: bool) -> Report:
    """The report at default settings; ShapecheckError when a release cannot be had."""
    if packs:
        return run(targets)
    return run(targets, packs=False) if packs_exist() else run(targets)


def packs_exist() -> bool:
    """Whether this lint reads packs; else both settings are the same run."""
    return "packs" in inspect.signature(run).parameters
