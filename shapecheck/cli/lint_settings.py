"""What one lint run was asked for: the command line first, then the project's table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shapecheck.cli.selection import FileIgnores, FilePatterns, expand
from shapecheck.errors import ShapecheckError


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of the command line that a project's table may hold too; empty when not given."""

    output_format: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    packs: tuple[str, ...] = ()
    baseline: str | None = None
    cache: bool | None = None
    config: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LintSettings:
    """Everything decided; `project` is the folder of the table, if there is one."""

    output_format: str
    select: frozenset[str]
    ignore: frozenset[str]
    file_ignores: FileIgnores
    excluded: FilePatterns
    packs: tuple[str, ...]
    baseline: Path | None
    cache: bool
    project: Path | None


def decide(given: Given, targets: tuple[str, ...]) -> LintSettings:
    """The settings of a run; ShapecheckError for an unknown code, key or file."""
    from shapecheck.rules.registry import RULES

    codes = sorted({rule.code for rule in RULES})
    here = Path.cwd()
    file = Path(given.config).absolute() if given.config else _table_of(targets)
    # Late: pydantic takes longer to import than most runs without a table need.
    if file is not None:
        from shapecheck.cli.project_settings import read_settings

        stated = read_settings(file)
        folder = file.parent
        output_format = given.output_format or stated.output_format
        select, ignore = given.select or stated.select, given.ignore or stated.ignore
        cache = stated.cache if given.cache is None else given.cache
        table, exclude, baseline = stated.per_file_ignores, stated.exclude, stated.baseline
        packs = given.packs or tuple(str(folder / pack) for pack in stated.packs)
    else:
        folder, output_format, cache = here, given.output_format, given.cache is not False
        select, ignore, packs = given.select, given.ignore, given.packs
        table, exclude, baseline = dict[str, list[str]](), list[str](), None
    if given.per_file_ignores:
        file_ignores = FileIgnores.of(_pairs(given.per_file_ignores), codes, here)
    else:
        file_ignores = FileIgnores.of(table, codes, folder)
    if given.exclude:
        excluded = FilePatterns(folder=here, patterns=given.exclude)
    else:
        excluded = FilePatterns(folder=folder, patterns=tuple(exclude))
    known = Path(given.baseline).absolute() if given.baseline else baseline and folder / baseline
    return LintSettings(
        output_format=output_format or "full",
        select=expand(select, codes),
        ignore=expand(ignore, codes),
        file_ignores=file_ignores,
        excluded=excluded,
        packs=packs,
        baseline=known or None,
        cache=cache,
        project=file.parent if file else None,
    )


def _table_of(targets: tuple[str, ...]) -> Path | None:
    """The file whose table holds for the targets: all of them share one, releases have none."""
    from shapecheck.cli.table_file import find_table

    found: set[Path | None] = set()
    for target in targets:
        if target.startswith("pypi:"):
            continue
        try:
            found.add(find_table(Path(os.path.abspath(target))))
        except ShapecheckError:
            raise
        except (OSError, ValueError):  # no path at all: said when the files are looked for
            continue
    if len(found) > 1:
        files = ", ".join(sorted(str(file or "none") for file in found))
        raise ShapecheckError(
            f"the targets belong to different settings ({files}); lint them one by one, or name "
            "one file with --config"
        )
    return found.pop() if found else None


def _pairs(given: tuple[str, ...]) -> Mapping[str, list[str]]:
    table: dict[str, list[str]] = {}
    for one in given:
        pattern, colon, codes = one.rpartition(":")
        if not colon or not pattern or not codes:
            raise ShapecheckError(
                f"--per-file-ignores {one}: write PATTERN:CODES, for example 'tests/*:SHP303'"
            )
        table.setdefault(pattern, []).append(codes)
    return table
