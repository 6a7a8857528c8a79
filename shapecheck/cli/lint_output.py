"""What a lint run prints: the findings for stdout, the summary for stderr."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shapecheck.cli.baseline import Known
from shapecheck.cli.formats import FROM_HERE, formatted
from shapecheck.diagnostics.model import Diagnostic
from shapecheck.diagnostics.places import seen_from
from shapecheck.static.report import Report

_MAX_STALE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The findings that are reported, and what became of the others."""

    report: Report
    known: int = 0
    unchanged: int = 0
    stale: tuple[Known, ...] = ()


def findings_text(left: Left, output_format: str, status: int) -> str:
    """Everything that goes to stdout."""
    report = left.report
    findings = list(_from_here(report)) if output_format in FROM_HERE else report.findings
    return formatted(findings, output_format, summary=_summary(left), status=status)


def _from_here(report: Report) -> Iterator[Diagnostic]:
    """The findings with paths from the current folder, which code hosts take for the checkout."""
    here = Path.cwd()
    for one in report.analyses:
        for finding in one.findings:
            yield seen_from(finding, root=one.root, folder=here)


def _summary(left: Left) -> dict[str, object]:
    return left.report.summary() | {"known": left.known, "unchanged": left.unchanged}


def summary_lines(left: Left, *, statistics: bool) -> list[str]:
    """The lines for stderr."""
    report = left.report
    counts = report.summary()
    number = len(report.findings)
    also = [
        f"{count} {what}"
        for count, what in ((left.known, "in the baseline"), (left.unchanged, "on unchanged lines"))
        if count
    ]
    lines = [
        f"{number} finding{'' if number == 1 else 's'} in {counts['files']} files "
        f"({counts['lines']} lines, {report.seconds:.1f} s)" + "".join(f"; {one}" for one in also)
    ]
    if not report.resolved:
        lines.append(
            "nothing was resolved: no size read from a model's config and no tensor creation "
            "in these files; point TARGET at the engine's workers and graph runners"
        )
    if left.stale:
        lines.append(
            f"entries of the baseline that are not found any more: {len(left.stale)}; "
            "write it anew with --write-baseline"
        )
        lines += [f"  {one}" for one in left.stale[:_MAX_STALE]]
        if len(left.stale) > _MAX_STALE:
            lines.append(f"  and {len(left.stale) - _MAX_STALE} more")
    return lines + (_statistics(report) if statistics else [])


def _statistics(report: Report) -> list[str]:
    counts = report.summary()
    reads, creations = counts["dim_reads"], counts["creations"]
    rows = [
        ("files", f"{counts['files']}, {counts['files_skipped']} skipped by the prefilter"),
        ("lines", f"{counts['lines']}, {counts['lines_loaded']} loaded with imports"),
        ("functions", f"{counts['functions']}, {counts['functions_cut_short']} cut short"),
        ("dim reads", _share(reads, counts["dim_reads_with_owner"])),
        ("creations", _share(creations, counts["creations_with_owner"])),
        ("contracts", str(counts["contracts"])),
        ("seconds", f"{counts['seconds']}{', result from the cache' * bool(counts['recalled'])}"),
    ]
    return [f"  {name:<10} {value}" for name, value in rows]


def _share(total: object, owned: object) -> str:
    assert isinstance(total, int)
    assert isinstance(owned, int)
    share = f" ({owned / total:.0%})" if total else ""
    return f"{total}, {owned} with an owner{share}"
