"""The one Diagnostic object that every tier (lint, trace, run time, pair) emits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding weighs: an error fails the command, a warning only shows."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Certainty(StrEnum):
    """`must` when every alternative conflicts, `may` when at least one does."""

    MUST = "must"
    MAY = "may"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A place in source: lines and columns count from 1, as editors show them."""

    path: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One supporting fact: a label, a sentence, and the place that shows it if there is one.

    `others` are the places that the sentence lists itself, when it speaks of several.
    """

    message: str
    label: str = ""
    span: Span | None = None
    others: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DimPair:
    """The named dimension a contract wants and the one that was found."""

    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where at run time a tensor crossed: the boundary, not a line of source.

    `where` is `Class.method`, `field` is `argument batch.hidden_states` or `return.logits`.
    """

    where: str
    field: str
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding; `message` is complete on its own and is all that `concise` shows."""

    code: str
    name: str
    message: str
    severity: Severity = Severity.ERROR
    certainty: Certainty = Certainty.MUST
    primary: Span | None = None
    crossing: Crossing | None = None
    notes: tuple[Note, ...] = ()
    dims: DimPair | None = None
    cell: str = ""
    fingerprint: str = ""
