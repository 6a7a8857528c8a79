"""What the interpreter observed: hand-overs, meetings and counts, for the rules to judge.

Never changed once made; not declared frozen for the reason given in `values`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import cast

from shapecheck.diagnostics.model import Note, Span
from shapecheck.static.contracts.promise import Promise
from shapecheck.static.guards import Guard
from shapecheck.static.values import Const, Size, Tensor, Value

MeetingKey = tuple[Span, Tensor, Tensor, bool]


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Pass:
    """A size handed to a parameter; `cell` names the parameter, `span` is the argument.

    Of the alternatives of the value those that are no sizes are unknown here.
    """

    cell: str
    value: Value
    span: Span
    call: Span
    caller: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Handover:
    """A value put where a contract or a pack promises something, in a phase that may be unknown."""

    cell: str
    given: Tensor | Size | Const
    promise: Promise
    phase: str
    guards: tuple[Guard, ...]
    span: Span
    where: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Split:
    """A field whose alternatives have two owners' sizes where it is read.

    `empty` tells which side is a placeholder without rows: the left, the right.
    """

    field: str
    left: Size
    right: Size
    empty: tuple[bool, bool]
    span: Span


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class EqualityTest:
    """`if a.shape == b.shape:` around a statement; `texts` are the expressions compared."""

    texts: frozenset[str]
    span: Span
    has_else: bool


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class GuardedCopy:
    """A copy that a test guards: `into` is the buffer's text, `cell` its field, if it is one."""

    test: EqualityTest
    into: str
    cell: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Meeting:
    """Two tensors whose axes an operator makes equal.

    `vague` where the rows of either were not known another time on the same way there.
    """

    operator: str
    left: Tensor
    right: Tensor
    guards: tuple[Guard, ...]
    span: Span
    cell: str
    where: str
    fills: bool = False
    vague: bool = False
    single_branch: bool = False
    moded: bool = False
    tested: EqualityTest | None = None


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Slice:
    """`x[:bound]` of a tensor whose first axis is `rows`; `moded` under a test of a mode."""

    rows: Size
    bound: Size
    moded: bool
    span: Span
    where: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Write:
    """A tensor stored in a field; `literal` when it is created right there.

    `initial` when an object's own constructor stores it: until it is bound, nothing is there.
    `names` are the names of the field, in its class and in every base.
    """

    tensor: Tensor
    span: Span
    literal: bool
    initial: bool = False
    names: tuple[str, ...] = ()


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Arms:
    """A conditional whose arms count in two units: `x // width` and `x`.

    `requests` is the count that it is given to, or else the divided arm; `tokens` the other arm.
    """

    requests: str
    tokens: str
    test: str
    span: Span
    where: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Division:
    """`rows // by`, both of known units; `single_branch` where `topk == 1` holds."""

    rows: Size
    by: Size
    span: Span
    where: str
    single_branch: bool


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Formula:
    """What one side of a graph runner (capture or replay) computes under one name."""

    side: str
    size: Size | None
    span: Span
    where: str
    single_branch: bool


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class KeyFormulae:
    """A field of a graph's key: a count where it is stored, that count divided where it is used."""

    container: str
    field: str
    whole: str
    divided: str
    span: Span
    other: Span
    where: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class Lookup:
    """`table[ids]`: the vocabulary the ids come from, and the one the table has rows for."""

    ids: Size
    rows: Size
    span: Span
    where: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class UnusedIndex:
    """`x[:len(index)]` in a function that never uses the values of `index`."""

    index: str
    target: str
    span: Span
    where: str


@dataclass(unsafe_hash=True, slots=True, kw_only=True)
class ContractFault:
    """Why run time would refuse a contract: the code says of what kind the fault is."""

    code: str
    message: str
    span: Span
    cell: str
    notes: tuple[Note, ...] = ()


@dataclass(eq=False, slots=True)
class Facts:
    """Everything one run observed, in the order of observation, without repetition.

    Plain data, so that it can be sent and kept; `functions` are those interpreted on their own,
    by place and class; `compared` are the kinds of sizes that a class or function asks to be equal
    in two models: its file, its name, the kind.
    """

    passes: dict[tuple[str, Span], Pass] = field(default_factory=dict[tuple[str, Span], Pass])
    handovers: dict[tuple[str, Span, str, Tensor | Size | Const], Handover] = field(
        default_factory=dict[tuple[str, Span, str, Tensor | Size | Const], Handover]
    )
    sized: set[str] = field(default_factory=set[str])
    destinations: dict[Span, str] = field(default_factory=dict[Span, str])
    splits: list[Split] = field(default_factory=list[Split])
    meetings: dict[MeetingKey, Meeting] = field(default_factory=dict[MeetingKey, Meeting])
    slices: dict[tuple[Span, Size, Size], Slice] = field(
        default_factory=dict[tuple[Span, Size, Size], Slice]
    )
    lookups: dict[Span, Lookup] = field(default_factory=dict[Span, Lookup])
    arms: dict[Span, Arms] = field(default_factory=dict[Span, Arms])
    divisions: dict[Span, Division] = field(default_factory=dict[Span, Division])
    formulae: dict[tuple[str, str], dict[tuple[Span, Size | None], Formula]] = field(
        default_factory=dict[tuple[str, str], dict[tuple[Span, Size | None], Formula]]
    )
    keys: dict[Span, KeyFormulae] = field(default_factory=dict[Span, KeyFormulae])
    unused_indices: dict[Span, UnusedIndex] = field(default_factory=dict[Span, UnusedIndex])
    guarded_copies: dict[Span, GuardedCopy] = field(default_factory=dict[Span, GuardedCopy])
    compared: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    field_writes: dict[str, list[Write]] = field(default_factory=dict[str, list["Write"]])
    joined: dict[str, Span] = field(default_factory=dict[str, Span])
    ranked: dict[str, Span] = field(default_factory=dict[str, Span])
    dim_reads: dict[Span, str] = field(default_factory=dict[Span, str])
    creations: dict[Span, bool] = field(default_factory=dict[Span, bool])
    contract_faults: list[ContractFault] = field(default_factory=list[ContractFault])
    shape_texts: int = 0
    functions: set[tuple[Span, str]] = field(default_factory=set[tuple[Span, str]])
    cut_short: set[tuple[Span, str]] = field(default_factory=set[tuple[Span, str]])

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))

    def add(self, later: Facts) -> None:
        """Everything that `later` observed as well, as if it had been observed from here on."""
        for one in fields(self):
            if one.name not in _BY_PLACE:
                _extend(getattr(self, one.name), getattr(later, one.name))
        self.shape_texts += later.shape_texts
        self.destinations |= later.destinations
        for name, sides in later.formulae.items():
            _extend(self.formulae.setdefault(name, {}), sides)
        for cell, writes in later.field_writes.items():
            for write in writes:
                self.saw_write(cell, write)
        for span, owner in later.dim_reads.items():
            self.saw_dim_read(span, owner)
        for span, owned in later.creations.items():
            self.saw_creation(span, owned=owned)

    def saw_dim_read(self, span: Span, owner: str) -> None:
        """Count a read of a size from a config; an owner once known stays."""
        if owner or span not in self.dim_reads:
            self.dim_reads[span] = owner

    def saw_write(self, cell: str, write: Write) -> None:
        """Remember a tensor stored in a field."""
        writes = self.field_writes.setdefault(cell, [])
        if write not in writes:
            writes.append(write)

    def saw_lookup(self, ids: Size | None, rows: Size | None, span: Span, where: str) -> None:
        """Remember an index into a table when both vocabularies are known."""
        if ids is not None and rows is not None and rows.poly.symbols():
            self.lookups.setdefault(span, Lookup(ids=ids, rows=rows, span=span, where=where))

    def saw_creation(self, span: Span, *, owned: bool) -> None:
        """Count a tensor creation, owned when any axis carries an owner."""
        self.creations[span] = owned or self.creations.get(span, False)


# What is seen again adds to what was seen there before.
_BY_PLACE = frozenset(
    ("destinations", "field_writes", "dim_reads", "creations", "formulae", "shape_texts")
)


def _extend(mine: object, theirs: object) -> None:
    if isinstance(mine, dict):
        first, later = cast("dict[object, object]", mine), cast("dict[object, object]", theirs)
        for key, fact in later.items():
            first.setdefault(key, fact)
    elif isinstance(mine, set):
        cast("set[object]", mine).update(cast("set[object]", theirs))
    else:
        cast("list[object]", mine).extend(cast("list[object]", theirs))
