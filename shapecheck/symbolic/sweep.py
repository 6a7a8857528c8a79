"""The standard runs of one subject: equal numbers, no row, one row, and either model wider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from shapecheck.diagnostics import Diagnostic, Note
from shapecheck.dims.model import Dims
from shapecheck.symbolic.hints import Setting
from shapecheck.symbolic.identity import Identity
from shapecheck.symbolic.report import Report
from shapecheck.symbolic.tracer import Trace, trace

Subject = Callable[[Trace], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a sweep: which numbers stand behind the symbols."""

    setting: Setting = Setting.EQUAL
    hints: Mapping[str, int] = field(default_factory=dict[str, int])


# No and one row are plain numbers: as symbols they would be compared with 0 and 1 all the time.
# A batch of no requests has no tokens either.
STANDARD = (
    Run(),
    Run(hints={"bs": 0, "tokens": 0}),
    Run(hints={"bs": 1}),
    Run(setting=Setting.DRAFT_WIDER),
    Run(setting=Setting.TARGET_WIDER),
)


def sweep(
    subject: Subject,
    dims: Dims | None = None,
    *,
    runs: Iterable[Run] = STANDARD,
    within: Iterable[str] = (),
    allow: Mapping[str, str] | None = None,
    one_dtype: bool = False,
) -> Report:
    """One report of `subject` under every run; an error ends its run, not the sweep.

    `allow` maps equalities that the project requires to their reasons. The sweep is vacuous when
    its first run is.
    """
    reports: list[Report] = []
    for run in runs:
        with trace(
            dims, setting=run.setting, hints=run.hints, within=within, one_dtype=one_dtype
        ) as t:
            for equality, reason in (allow or {}).items():
                t.allow(equality, reason=reason)
            t.run(subject, t)
        reports.append(t.report())
    return merged(reports)


def merged(reports: Iterable[Report]) -> Report:
    """The reports of several runs as one, every finding once."""
    parts = list(reports)
    first = parts[0]
    findings = _Findings()
    for part in parts:
        findings.take(part)
    stopped: dict[str, list[str]] = {}
    for part in parts:
        if part.stopped:
            stopped.setdefault(part.stopped, []).append(part.settings[0])
    return Report(
        findings=findings.roots(len(parts)),
        consequences=findings.consequences(parts),
        comparisons=_once(part.comparisons for part in parts),
        capacity=_once(part.capacity for part in parts),
        notes=_texts(part.notes for part in parts),
        specialised=_texts(part.specialised for part in parts),
        data_hints=_texts(part.data_hints for part in parts),
        stubs=_texts(part.stubs for part in parts),
        allowed=first.allowed,
        checked_operations=first.checked_operations,
        crossings=first.crossings,
        stubbed_operations=_texts(part.stubbed_operations for part in parts),
        stopped="; ".join(f"{' | '.join(runs)}: {error}" for error, runs in stopped.items())
        or None,
        settings=tuple(setting for part in parts for setting in part.settings),
    )


@dataclass(slots=True)
class _Found:
    """One bug: as the first run told it, and the settings of all that did."""

    shown: Diagnostic
    identity: Identity
    numbers: frozenset[str]
    settings: list[str]

    def is_same(self, identity: Identity, numbers: frozenset[str]) -> bool:
        return self.identity.is_same(identity, self.numbers | numbers)


@dataclass(slots=True)
class _Findings:
    """The findings of several runs, every bug once."""

    _found: list[_Found] = field(default_factory=list[_Found])

    def take(self, report: Report) -> None:
        """What a run found, beside what earlier ones did."""
        earlier, setting = list(self._found), " | ".join(report.settings)
        for shown in report.findings:
            identity = report.identities[shown]
            known = [one for one in earlier if one.is_same(identity, report.numbers)]
            if not known:
                self._found.append(_Found(shown, identity, report.numbers, [setting]))
            elif setting not in known[0].settings:
                known[0].settings.append(setting)

    def roots(self, runs: int) -> tuple[Diagnostic, ...]:
        """All of them; of several runs, with those in which each was found."""
        if runs == 1:
            return tuple(one.shown for one in self._found)
        return tuple(
            replace(one.shown, notes=(*one.shown.notes, _settings(one.settings, runs)))
            for one in self._found
        )

    def consequences(self, reports: Iterable[Report]) -> tuple[Diagnostic, ...]:
        """Those of all runs that are no finding of another."""
        later = _Findings()
        for report in reports:
            kept = tuple(shown for shown in report.consequences if not self._has(shown, report))
            later.take(replace(report, findings=kept))
        return later.roots(1)

    def _has(self, shown: Diagnostic, report: Report) -> bool:
        identity = report.identities[shown]
        return any(one.is_same(identity, report.numbers) for one in self._found)


def _settings(settings: list[str], runs: int) -> Note:
    found = "every setting" if len(settings) == runs else " | ".join(settings)
    return Note(label="found with", message=found)


def _once(groups: Iterable[tuple[Diagnostic, ...]]) -> tuple[Diagnostic, ...]:
    kept: dict[object, Diagnostic] = {}
    for diagnostic in _chain(groups):
        dims = diagnostic.dims
        names = frozenset((dims.expected, dims.found)) if dims else frozenset({diagnostic.message})
        kept.setdefault((diagnostic.code, diagnostic.primary, names), diagnostic)
    return tuple(kept.values())


def _chain(groups: Iterable[tuple[Diagnostic, ...]]) -> Iterator[Diagnostic]:
    for group in groups:
        yield from group


def _texts(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))
