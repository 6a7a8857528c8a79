"""What the interpreter observed: hand-overs, meetings and counts, for the rules to judge."""

from __future__ import annotations

from dataclasses import dataclass, field

from shapecheck.diagnostics.model import Span
from shapecheck.static.symbols import Guard
from shapecheck.static.values import Size, Tensor, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A size handed to a parameter; `cell` names the parameter, `span` is the argument."""

    cell: str
    value: Value
    span: Span
    call: Span
    caller: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A field whose alternatives have two owners' sizes where it is read.

    `empty` tells which side is a placeholder without rows: the left, the right.
    """

    field: str
    left: Size
    right: Size
    empty: tuple[bool, bool]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityTest:
    """`if a.shape == b.shape:` around a statement; `texts` are the expressions compared."""

    texts: frozenset[str]
    span: Span
    has_else: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Two tensors whose axes an operator makes equal; `into` is the one written, if any."""

    operator: str
    left: Tensor
    right: Tensor
    guards: tuple[Guard, ...]
    span: Span
    cell: str
    where: str
    fills: bool = False
    tested: EqualityTest | None = None


@dataclass(eq=False, slots=True)
class Facts:
    """Everything one run observed, in the order of observation, without repetition."""

    passes: dict[tuple[str, Span], Pass] = field(default_factory=dict[tuple[str, Span], Pass])
    sized: set[str] = field(default_factory=set[str])
    destinations: dict[Span, str] = field(default_factory=dict[Span, str])
    splits: list[Split] = field(default_factory=list[Split])
    meetings: list[Meeting] = field(default_factory=list[Meeting])
    guarded_copies: dict[Span, tuple[EqualityTest, str]] = field(
        default_factory=dict[Span, tuple[EqualityTest, str]]
    )
    dim_reads: dict[Span, str] = field(default_factory=dict[Span, str])
    creations: dict[Span, bool] = field(default_factory=dict[Span, bool])
    functions: int = 0
    cut_short: int = 0

    def saw_dim_read(self, span: Span, owner: str) -> None:
        """Count a read of a size from a config; an owner once known stays."""
        if owner or span not in self.dim_reads:
            self.dim_reads[span] = owner

    def saw_creation(self, span: Span, *, owned: bool) -> None:
        """Count a tensor creation, owned when any axis carries an owner."""
        self.creations[span] = owned or self.creations.get(span, False)
