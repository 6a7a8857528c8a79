"""What one trace heard: meetings, comparisons, capacity relations, numbers and data branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shapecheck.diagnostics import Diagnostic
from shapecheck.dims.vocabulary import Owner
from shapecheck.symbolic.attribution import Site
from shapecheck.symbolic.expressions import Equation


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Something an operation needed that the dimensions do not promise.

    `broken` is the finding of a contract, when it was no operation but a crossing; `remedy` is what
    to do, where it is not what the code's other findings say.
    """

    code: str
    text: str
    names: frozenset[str]
    site: Site
    sides: tuple[str, str] | None = None
    operation: str = ""
    origins: tuple[tuple[str, Site], ...] = ()
    called_from: Site | None = None
    refused: bool = False
    tainted: bool = False
    may: bool = False
    remedy: str = ""
    broken: Diagnostic | None = None

    def key(self) -> tuple[str, str, int, frozenset[str]]:
        """Two meetings with one key are one finding."""
        said = frozenset({self.text})
        names = said if self.broken is not None else self.names or said
        return (self.code, self.site.path, self.site.line, names)

    def taint(self) -> tuple[str, frozenset[str]]:
        """What a later finding must share to be a consequence: kind and names."""
        return (self.code, self.names)

    def place(self) -> tuple[str, str, frozenset[str]]:
        """The function in which the names met."""
        return (self.site.path, self.site.function, self.names)

    def cause(self) -> tuple[str, frozenset[str], tuple[str, ...]] | None:
        """Meetings with one cause come from the same two lines; None when those are unknown."""
        if not self.origins:
            return None
        return (self.code, self.names, tuple(sorted(str(site) for _, site in self.origins)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The traced code itself compared sizes of different owners, and they were equal."""

    equation: Equation
    owners: frozenset[Owner]
    site: Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """`small <= large` was asked at a slice, gather or top-k; `holds` by the hints of this run."""

    small: str
    large: str
    owners: frozenset[Owner]
    site: Site
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Specialised:
    """A size was used as a plain number here, so nothing is known beyond this number."""

    text: str
    number: int | float
    site: Site


@dataclass(frozen=True, slots=True, kw_only=True)
class DataHint:
    """A branch on tensor data was answered without data."""

    site: Site
    answer: bool


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Everything kept of one trace."""

    checked_operations: int = 0
    crossings: int = 0
    meetings: dict[object, Meeting] = field(default_factory=dict[object, Meeting])
    comparisons: dict[object, Comparison] = field(default_factory=dict[object, Comparison])
    relations: dict[object, Relation] = field(default_factory=dict[object, Relation])
    notes: dict[object, tuple[Equation, Site]] = field(
        default_factory=dict[object, tuple[Equation, Site]]
    )
    specialised: dict[object, Specialised] = field(default_factory=dict[object, Specialised])
    data_hints: list[DataHint] = field(default_factory=list[DataHint])
    stubs: set[str] = field(default_factory=set[str])
    stubbed_operations: set[str] = field(default_factory=set[str])

    def add(self, meeting: Meeting) -> None:
        """Keep the meeting, once for its line; the shortest wording wins."""
        known = self.meetings.get(meeting.key())
        if known is None or (
            len(meeting.text) < len(known.text) and known.tainted == meeting.tainted
        ):
            self.meetings[meeting.key()] = meeting

    def compare(self, equation: Equation, owners: frozenset[Owner], site: Site) -> None:
        """Keep a comparison that the traced code made itself."""
        key = (site.path, site.line, equation.names)
        self.comparisons.setdefault(key, Comparison(equation=equation, owners=owners, site=site))

    def relate(self, order: Equation, owners: frozenset[Owner], site: Site, *, holds: bool) -> None:
        """Keep a relation of capacity."""
        key = (site.path, site.function, order.left, order.right)
        self.relations.setdefault(
            key,
            Relation(small=order.left, large=order.right, owners=owners, site=site, holds=holds),
        )

    def note(self, equation: Equation, site: Site) -> None:
        """Keep an equality that concerns one owner."""
        self.notes.setdefault((site.path, site.line, equation.names), (equation, site))

    def roots(self) -> Iterator[Meeting]:
        """The meetings that no earlier one explains, in the order in which they happened."""
        return (meeting for meeting, root in self._ranked() if root)

    def consequences(self) -> Iterator[Meeting]:
        """The meetings on results of an offending operation, or with a cause already reported."""
        return (meeting for meeting, root in self._ranked() if not root)

    def _ranked(self) -> Iterator[tuple[Meeting, bool]]:
        causes: set[object] = set()
        for meeting in self.meetings.values():
            cause = meeting.cause()
            again = cause is not None and cause in causes
            if cause is not None:
                causes.add(cause)
            yield meeting, not (meeting.tainted or again)
