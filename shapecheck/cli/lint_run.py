"""One lint run as the command line asks for it: settings, analysis, then what is left to report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from shapecheck.cli.baseline import Baseline, read_baseline, write_baseline
from shapecheck.cli.changes import read_changes
from shapecheck.cli.lint_output import Left
from shapecheck.cli.lint_settings import Given, LintSettings, decide
from shapecheck.diagnostics.model import Diagnostic
from shapecheck.errors import ShapecheckError
from shapecheck.static.release import CACHE_FLAG, cache_folder, is_unpacked
from shapecheck.static.report import Inputs, Report, RootReport, run
from shapecheck.static.workers import Progress

_STDIN = "-"
_CACHE = ".shapecheck_cache"
_MARKS = ("pyproject.toml", ".git")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says."""

    targets: tuple[str, ...]
    given: Given
    write_baseline: str | None = None
    diff_base: str | None = None
    stdin_filename: str | None = None
    shipped_packs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run came to."""

    left: Left
    output_format: str
    exit_status: int
    remarks: tuple[str, ...] = ()


def lint_targets(asked: Asked, stdin: bytes | None, progress: Progress | None) -> Done:
    """Run the analysis and take away what is not asked for; ShapecheckError when it cannot."""
    targets, given = _with_stdin(asked, stdin)
    settings = decide(asked.given, targets)
    writes = asked.write_baseline is not None
    # Before the analysis: a baseline that cannot be read should not cost a minute first.
    baseline = read_baseline(settings.baseline) if settings.baseline and not writes else None
    report = run(
        targets,
        select=settings.select,
        ignore=settings.ignore,
        packs=asked.shipped_packs,
        pack_paths=settings.packs,
        inputs=Inputs(
            given=given,
            excluded=settings.excluded.match,
            cache=_cache_of(settings) if not given else lambda _root: None,
            progress=progress,
        ),
    )
    report = _filtered(report, lambda one, root: not _is_hidden(one, root, settings))
    if asked.write_baseline is not None:
        file = Path(asked.write_baseline)
        number = write_baseline(file, report.findings)
        status = report.exit_status
        remark = f"{number} finding{'' if number == 1 else 's'} written to {file}"
        kept = _filtered(report, lambda one, _: one.code in ("SHP901", "SHP903"))
        return Done(
            left=Left(report=kept, known=number),
            output_format=settings.output_format,
            exit_status=0 if status == 1 else status,
            remarks=(remark,),
        )
    left = _left(report, settings, baseline, asked.diff_base)
    return Done(
        left=left, output_format=settings.output_format, exit_status=left.report.exit_status
    )


def _with_stdin(asked: Asked, stdin: bytes | None) -> tuple[tuple[str, ...], dict[Path, bytes]]:
    if _STDIN not in asked.targets:
        if asked.stdin_filename is not None:
            raise ShapecheckError("--stdin-filename: nothing is read from stdin; name - as TARGET")
        return asked.targets, {}
    if len(asked.targets) > 1:
        raise ShapecheckError("-: stdin is linted alone; lint the other targets in another run")
    name = asked.stdin_filename or "<stdin>"
    if os.path.isdir(name):
        raise ShapecheckError(f"--stdin-filename {name}: it is a folder; name a file in it")
    return (name,), {Path(os.path.abspath(name)): stdin or b""}


def _cache_of(settings: LintSettings) -> Callable[[Path], Path | None]:
    """Where outcomes are kept: in the project, or in the user's cache for a release."""

    def folder(root: Path) -> Path | None:
        if not settings.cache:
            return None
        if is_unpacked(root) or os.environ.get(CACHE_FLAG):
            return cache_folder() / "results"
        if settings.project is not None:
            return settings.project / _CACHE
        for candidate in [root, *root.parents]:
            if any((candidate / mark).exists() for mark in _MARKS):
                return candidate / _CACHE
        return root / _CACHE

    return folder


def _is_hidden(finding: Diagnostic, root: RootReport, settings: LintSettings) -> bool:
    if finding.primary is None:
        return False
    return settings.file_ignores.hide(finding.code, root.root / finding.primary.path)


def _left(
    report: Report, settings: LintSettings, baseline: Baseline | None, diff_base: str | None
) -> Left:
    known = unchanged = 0
    left = Left(report=report)
    if baseline is not None:
        new, unseen = baseline.split(report.findings)
        known = len(report.findings) - len(new)
        from shapecheck.rules.registry import RULES

        asked = settings.select or frozenset(rule.code for rule in RULES)
        stale = baseline.stale(
            unseen, asked - settings.ignore, {one.root: one.covered for one in report.analyses}
        )
        kept = {id(one) for one in new}
        report = _filtered(report, lambda one, _: id(one) in kept)
        left = Left(report=report, known=known, stale=tuple(stale))
    if diff_base is not None:
        changes = {one.root: read_changes(one.root, diff_base) for one in report.analyses}
        before = len(report.findings)
        report = _filtered(report, lambda one, root: changes[root.root].touch(one, root.root))
        unchanged = before - len(report.findings)
    return replace(left, report=report, unchanged=unchanged)


def _filtered(report: Report, keep: Callable[[Diagnostic, RootReport], bool]) -> Report:
    return replace(
        report,
        analyses=tuple(
            replace(root, findings=tuple(one for one in root.findings if keep(one, root)))
            for root in report.analyses
        ),
    )
