"""One lint run over parts of releases, remembered: several cases share a release."""

from __future__ import annotations

from functools import cache

from shapecheck.static.report import Report, run


@cache
def lint(targets: tuple[str, ...], *, packs: bool) -> Report:
    """The report at default settings; ShapecheckError when a release cannot be had."""
    return run(targets, packs=packs)
