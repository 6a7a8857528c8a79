"""What a rule is: its code, its page, and a judgement over the facts of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shapecheck.diagnostics.model import Diagnostic, Severity, Span
from shapecheck.static.facts import Facts


@dataclass(eq=False, slots=True)
class Verdicts:
    """What was reported so far: a cause that has its finding gets no second one.

    `arms` are the other reads of an argument that was reported: each is a cause of its own.
    `fields` are those whose size was reported: what follows from it is the same cause.
    """

    causes: set[Span] = field(default_factory=set[Span])
    arms: set[Span] = field(default_factory=set[Span])
    cells: set[str] = field(default_factory=set[str])
    fields: set[str] = field(default_factory=set[str])


Check = Callable[[Facts, Verdicts], Iterable[Diagnostic]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; `page` is its module's docstring, `bad` and `good` are its examples and tests.

    `stated` judges what contracts say, and comes before every `check`, which infers.
    """

    code: str
    name: str
    since: str
    page: str
    bad: str = ""
    good: str = ""
    severity: Severity = Severity.ERROR
    check: Check | None = None
    stated: Check | None = None

    @property
    def summary(self) -> str:
        """The first line of the page, without the code."""
        return self.page.strip().splitlines()[0].split(":", 1)[-1].strip()
