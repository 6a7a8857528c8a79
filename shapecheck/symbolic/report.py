"""What a trace found, as Diagnostics, and whether it looked at anything at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from shapecheck.diagnostics import Certainty, Diagnostic, DimPair, Note, Severity
from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.full import render_full
from shapecheck.diagnostics.json import render_json
from shapecheck.symbolic.attribution import NOWHERE
from shapecheck.symbolic.evidence import Comparison, Evidence, Meeting, Relation
from shapecheck.symbolic.guards import Guard, guard_at
from shapecheck.symbolic.identity import Identity, identity_of
from shapecheck.symbolic.parties import MODELS

_REMEDIES = {
    "SHP203": "make both of one rank and dtype where they are created",
    "SHP301": "size both from the same name of Dims, or allow the equality with its reason",
    "SHP303": "count both in the same rows, or allow the equality with its reason",
    "SHP304": "cast in words where the other model's tensor enters",
    "SHP307": "give the axis a place for each position, or bound the index",
    "SHP401": "give the axis as many rows as the index counts, or bound the index",
    "SHP305": "translate the ids into the vocabulary of the table first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """An equality that the project declares, with its reason; `used` when it was needed."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of one trace.

    `findings` are roots; `consequences` happened on the results of an offending operation;
    `capacity` are the `n <= capacity` relations the code relied on; `specialised` the places
    where a size became a number; `stubs` what was not run. `stopped` is the error that ended
    the traced code early, if one did. `numbers` are the names that had no symbol in the run, and
    `identities` say what each finding is about, to tell it in another run.
    """

    findings: tuple[Diagnostic, ...] = ()
    consequences: tuple[Diagnostic, ...] = ()
    comparisons: tuple[Diagnostic, ...] = ()
    capacity: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    specialised: tuple[str, ...] = ()
    data_hints: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    allowed: tuple[Allowed, ...] = ()
    checked_operations: int = 0
    crossings: int = 0
    stubbed_operations: tuple[str, ...] = ()
    stopped: str | None = None
    settings: tuple[str, ...] = field(default=())
    numbers: frozenset[str] = frozenset()
    identities: Mapping[Diagnostic, Identity] = field(default_factory=dict[Diagnostic, Identity])

    @property
    def vacuous(self) -> str | None:
        """Why this run shows nothing, or None when it looked at something."""
        if self.stubbed_operations:
            return f"stubbed: {', '.join(self.stubbed_operations)} did not really run"
        if self.stopped and not self.findings:
            return (
                f"the traced code stopped early: {self.stopped}; give it what it needs to run to "
                "its end and trace again"
            )
        if not (self.checked_operations or self.crossings):
            return (
                "no operation joined two tensors with named dimensions and no contract was "
                "crossed; trace code that joins what t.make and t.tensor give"
            )
        return None

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings, 2 nothing was checked."""
        if any(finding.severity is Severity.ERROR for finding in self.findings):
            return 1
        return 2 if self.vacuous else 0

    def text(self) -> str:
        """The report a person reads."""
        lines = [render_full(finding) for finding in self.findings]
        lines += [f"  consequence: {finding.message}" for finding in self.consequences]
        for title, items in self._lists():
            if items:
                lines.append(f"{title}:")
                lines += [f"  {item}" for item in items]
        lines.append(self.verdict())
        return "\n".join(lines) + "\n"

    def verdict(self) -> str:
        """How much was found and checked, and where the traced code stopped if it did."""
        number = len(self.findings)
        said = [
            f"{number} finding{'' if number == 1 else 's'}, {self.checked_operations} operations "
            f"and {self.crossings} tensors at contracts checked"
        ]
        if self.stopped:
            said.append(f"stopped: {self.stopped}; what comes after it was not checked")
        if self.vacuous:
            said.append(f"nothing is shown by this run: {self.vacuous}")
        return "; ".join(said)

    def summary(self) -> dict[str, object]:
        """The counts and lists beside the findings, for JSON and SARIF."""
        counts: dict[str, object] = {
            "tier": "trace",
            "checked_operations": self.checked_operations,
            "crossings": self.crossings,
            "vacuous": self.vacuous,
            "stopped": self.stopped,
            "settings": list(self.settings),
            "consequences": [finding.message for finding in self.consequences],
            "allowed": [f"{item.text}: {item.reason}" for item in self.allowed],
        }
        return counts | {title.replace(" ", "_"): list(items) for title, items in self._lists()}

    def json(self) -> str:
        """The report in the project's JSON, version 1."""
        return render_json(self.findings, self.summary())

    def _lists(self) -> list[tuple[str, tuple[str, ...]]]:
        return [
            ("comparisons", _lines(self.comparisons)),
            ("capacity relations", _lines(self.capacity)),
            ("specialised", self.specialised),
            ("data branches", self.data_hints),
            ("stubs", self.stubs),
        ]


def _lines(diagnostics: Iterable[Diagnostic]) -> tuple[str, ...]:
    return tuple(f"{item.primary}  {item.message}" for item in diagnostics)


def build_report(
    evidence: Evidence,
    *,
    origins: Mapping[str, str],
    allowed: Iterable[Allowed] = (),
    stopped: str | None = None,
    setting: str = "",
    numbers: frozenset[str] = frozenset(),
) -> Report:
    """The report of what was heard; `origins` says where each dimension's number comes from."""
    comparisons = [(_comparison(item), item) for item in evidence.comparisons.values()]
    guards = [(shown, item) for shown, item in comparisons if shown.severity is not Severity.NOTE]
    guarded = {
        (item.site.path, item.site.function, item.equation.names)
        for shown, item in comparisons
        if shown.code == "SHP402"
    }
    # The copy behind a reported guard asks the same question once more.
    behind = [item for item in evidence.roots() if item.place() in guarded]
    roots = [(_finding(item, origins), item) for item in evidence.roots() if item not in behind]
    later = [(_finding(item, origins), item) for item in (*behind, *evidence.consequences())]
    known = {
        shown: Identity(
            code=shown.code, place=item.site.span(), names=item.equation.names, subject="compared"
        )
        for shown, item in guards
    }
    return Report(
        findings=(*(shown for shown, _ in guards), *(shown for shown, _ in roots)),
        consequences=tuple(shown for shown, _ in later),
        identities=known | {shown: identity_of(item) for shown, item in (*roots, *later)},
        numbers=numbers,
        comparisons=tuple(shown for shown, _ in comparisons if shown.severity is Severity.NOTE),
        capacity=tuple(_relation(item) for item in evidence.relations.values()),
        notes=tuple(f"{site}  {equation}" for equation, site in evidence.notes.values()),
        specialised=tuple(
            f"{item.site}  {item.text} = {item.number}" for item in evidence.specialised.values()
        ),
        data_hints=tuple(dict.fromkeys(str(hint.site) for hint in evidence.data_hints)),
        stubs=tuple(sorted(evidence.stubs)),
        allowed=tuple(allowed),
        checked_operations=evidence.checked_operations,
        crossings=evidence.crossings,
        stubbed_operations=tuple(sorted(evidence.stubbed_operations)),
        stopped=stopped,
        settings=(setting,) if setting else (),
    )


def _finding(meeting: Meeting, origins: Mapping[str, str]) -> Diagnostic:
    operation = f", {meeting.operation}" if meeting.operation else ""
    refused = " (refused: the numbers differ)" if meeting.refused else ""
    notes = [
        Note(label=what, message="made here", span=site.span()) for what, site in meeting.origins
    ]
    caller = meeting.called_from
    if caller is not None:
        notes.insert(0, Note(label="called from", message=caller.function, span=caller.span()))
    notes += [
        Note(label=name, message=origins[name]) for name in sorted(meeting.names) if name in origins
    ]
    if meeting.broken is not None:
        said = (*meeting.broken.notes, *notes)
        place = meeting.broken.primary if meeting.site is NOWHERE else meeting.site.span()
        return replace(meeting.broken, primary=place, notes=said)
    notes.append(Note(label="settle it", message=meeting.remedy or _REMEDIES[meeting.code]))
    return Diagnostic(
        code=meeting.code,
        name=NAMES[meeting.code],
        message=f"{meeting.text} at {meeting.site.function}{operation}{refused}",
        certainty=Certainty.MAY if meeting.may else Certainty.MUST,
        primary=meeting.site.span(),
        notes=tuple(notes),
        dims=DimPair(expected=meeting.sides[0], found=meeting.sides[1]) if meeting.sides else None,
        cell=meeting.site.function,
    )


def _comparison(item: Comparison) -> Diagnostic:
    guard = guard_at(item.site.file, item.site.line)
    equation, where = item.equation, item.site.function
    code, severity = "SHP301", Severity.NOTE
    says = "is compared; the branch for unequal sizes was traced"
    if guard is Guard.COPY:
        code, severity = "SHP402", Severity.ERROR
        says = "guards a copy: with other numbers the copy is skipped without a word"
    elif guard is not Guard.BRANCH:
        severity, says = Severity.WARNING, "is demanded by the code itself"
    return Diagnostic(
        code=code,
        name=NAMES[code],
        message=f"{equation} {says}, at {where}",
        severity=severity,
        certainty=Certainty.MUST if guard is Guard.COPY else Certainty.MAY,
        primary=item.site.span(),
        dims=DimPair(expected=equation.left, found=equation.right),
        cell=where,
    )


def _relation(item: Relation) -> Diagnostic:
    crosses = item.owners >= MODELS
    holds = "is relied on" if item.holds else "does not hold here, so the slice is cut short"
    return Diagnostic(
        code="SHP401",
        name=NAMES["SHP401"],
        message=f"{item.small} <= {item.large} {holds}, at {item.site.function}",
        severity=Severity.WARNING if crosses or not item.holds else Severity.NOTE,
        certainty=Certainty.MAY,
        primary=item.site.span(),
        dims=DimPair(expected=item.large, found=item.small),
        cell=item.site.function,
    )
