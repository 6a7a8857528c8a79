"""The machine that interprets: the project, the cells, the facts and the budgets."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from shapecheck.diagnostics.model import Span
from shapecheck.static.contracts.lookup import Promises
from shapecheck.static.counts import units_of
from shapecheck.static.facts import Facts, MeetingKey
from shapecheck.static.frames import Calls, Frame
from shapecheck.static.guards import Guard
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.owners import DRAFT
from shapecheck.static.project import Project
from shapecheck.static.symbols import Ownership
from shapecheck.static.unions import join
from shapecheck.static.units import Basis, Birth, Body, Giver, Segment, UnitKey
from shapecheck.static.values import ObjectRef, Size, Value, telling

if TYPE_CHECKING:
    from shapecheck.static.recall import Recalled
    from shapecheck.static.summaries import Summary

MAX_DEPTH = 6  # calls that are followed, one inside the other
ROOT_BUDGET = 8_000  # statements
# Of what is left of them a call gets a part, by the most that it is handed: nothing, an object that
# the program made, a size or something of a model's. What comes behind a long call is seen as well.
_PARTS = 32, 4, 2
_LEAST = 30


@dataclass(eq=False, slots=True)
class Reach:
    """How far the calls of a stretch went: how deep, through which functions.

    `outermost` is the place in the stack of the outermost function that was not entered again,
    `sees` whether anything was noted.
    """

    depth: int = 0
    followed: set[FunctionFacts] = field(default_factory=set[FunctionFacts])
    outermost: int = MAX_DEPTH + 1
    sees: bool = False

    def add(self, depth: int, followed: Iterable[FunctionFacts]) -> None:
        """These functions were followed as well, so deep."""
        self.depth = max(self.depth, depth)
        self.followed.update(followed)


@dataclass(eq=False, slots=True)
class Machine:
    """What every frame shares.

    `facts` and `basis` are those of the unit that is being interpreted, `bases` and `segments`
    those of every unit, as bytes up to `closed`. `sites` are the objects that this unit made,
    `giver` is at work, `renewed` the fields that a giver of an earlier run gives something else.
    `recalled` is what an earlier run left, and `known` the units that it spares this one. `cuts`
    counts the calls that were not followed to their end, `summaries` holds results of calls.
    """

    project: Project
    run_body: Callable[[Frame], Value]
    run_root: Callable[[Machine, FunctionFacts, ClassFacts | None], None]
    evaluate: Callable[[Frame, ast.expr], Value]
    call: Callable[
        [Frame, FunctionFacts, Value | None, tuple[Value, ...], dict[str, Value], ast.expr], Value
    ]
    selves: dict[ClassFacts, ObjectRef] = field(default_factory=dict[ClassFacts, ObjectRef])
    done: set[tuple[FunctionFacts, ClassFacts | None]] = field(
        default_factory=set[tuple[FunctionFacts, "ClassFacts | None"]]
    )
    globals: dict[tuple[str, str], Value] = field(default_factory=dict[tuple[str, str], Value])
    sites: dict[tuple[object, ...], ObjectRef] = field(
        default_factory=dict[tuple[object, ...], ObjectRef]
    )
    summaries: dict[tuple[object, ...], Summary] = field(
        default_factory=dict[tuple[object, ...], "Summary"]
    )
    reach: Reach = field(default_factory=Reach)
    facts: Facts = field(default_factory=Facts)
    unit: UnitKey = ("", "", "")
    vague: set[tuple[Span, Calls]] = field(default_factory=set[tuple[Span, Calls]])
    ways: list[tuple[Facts, MeetingKey, Calls]] = field(
        default_factory=list[tuple[Facts, MeetingKey, Calls]]
    )
    basis: set[Body | UnitKey | Basis] = field(default_factory=set["Body | UnitKey | Basis"])
    bases: dict[UnitKey, Basis] = field(default_factory=dict[UnitKey, "Basis"])
    segments: list[Segment] = field(default_factory=list[Segment])
    closed: int = 0
    guards: dict[ast.expr, tuple[Guard, Guard]] = field(
        default_factory=dict[ast.expr, tuple[Guard, Guard]]
    )
    writers: dict[tuple[ClassFacts, str], list[tuple[FunctionFacts, UnitKey]]] = field(
        default_factory=dict[tuple["ClassFacts", str], list[tuple["FunctionFacts", UnitKey]]]
    )
    names: dict[tuple[ModuleFacts, str], Value] = field(
        default_factory=dict[tuple["ModuleFacts", str], "Value"]
    )
    scopes: dict[ClassFacts, dict[str, Value]] = field(
        default_factory=dict[ClassFacts, dict[str, Value]]
    )
    stored_by: dict[tuple[ClassFacts | None, str], frozenset[str]] = field(
        default_factory=dict[tuple["ClassFacts | None", str], frozenset[str]]
    )
    giver: Giver = ("", "", "")
    renewed: set[tuple[ObjectRef, str]] = field(default_factory=set[tuple["ObjectRef", str]])
    recalled: Recalled | None = None
    known: frozenset[UnitKey] = frozenset()
    budget: int = ROOT_BUDGET
    cuts: int = 0
    promises: Promises = field(default_factory=Promises)

    def run_call(self, frame: Frame) -> tuple[Value, bool]:
        """What the body of a call returns within its part of the budget, and whether it ended."""
        left, self.budget = self.budget, self.allowed(frame.state.env)
        given = self.budget
        try:
            result = self.run_body(frame)
            return result, self.budget > 0
        finally:
            self.cuts += self.budget <= 0
            self.budget = left - given + max(self.budget, 0)

    def run_apart(self, frame: Frame) -> None:
        """Interpret a constructor that waited, at no cost to whoever happens to ask first.

        Another run may recall what it gave; that one has to come as far.
        """
        saved, self.budget = (self.budget, self.cuts), ROOT_BUDGET
        try:
            self.run_call(frame)
        finally:
            self.budget, self.cuts = saved

    def allowed(self, env: dict[str, Value]) -> int:
        """How many statements a call with these names may take."""
        part = _PARTS[max(map(telling, env.values()), default=0)]
        return min(self.budget, max(self.budget // part, _LEAST))

    def finish(self) -> None:
        """Mark the meetings whose rows were not known another time on the same chain of calls."""
        for facts, key, calls in self.ways:
            if (key[0], calls) in self.vague:
                facts.meetings[key] = replace(facts.meetings[key], vague=True)

    @contextmanager
    def giving(self, birth: Birth, body: Body) -> Generator[None]:
        """`birth` gives what is given in this context, and rests on what the code in it did."""
        giver, basis = self.giver, self.basis
        inner: set[Body | UnitKey | Basis] = {body}
        self.giver, self.basis = birth, inner
        try:
            yield
        finally:
            birth.basis = frozenset(inner)
            self.giver, self.basis = giver, basis
            basis.add(birth.basis)

    @contextmanager
    def seeing_for(self, unit: UnitKey) -> Generator[None]:
        """What is seen in this context is what this unit sees, whoever is at work."""
        outer, self.unit = self.unit, unit
        if unit != outer:
            self.facts = self.segment(unit)
        try:
            yield
        finally:
            self.unit = outer
            if unit != outer:
                self.facts = self.segment(outer)

    @contextmanager
    def apart(self) -> Generator[Reach]:
        """How far what runs in the context goes, and whether anything is noted in it."""
        reach, facts = self.reach, self.facts
        self.reach = inner = Reach()
        first = len(self.segments)
        self.facts = self.segment(self.unit)
        try:
            yield inner
        finally:
            inner.sees = any(self.segments[first:])
            if inner.sees:
                self.facts = self.segment(self.unit)
            else:
                del self.segments[first:]
                self.facts = facts
            self.reach = reach
            reach.add(inner.depth, inner.followed)
            reach.outermost = min(reach.outermost, inner.outermost)

    def segment(self, unit: UnitKey) -> Facts:
        """A place for what this unit sees from here on."""
        seen = Facts()
        self.segments.append(Segment(unit, known=seen))
        return seen

    def close_segments(self) -> None:
        """Keep what was seen so far as bytes, a fifth of the size; between two units only."""
        open_ = {id(facts) for facts, _, _ in self.ways}
        *done, last = self.segments[self.closed :]
        self.segments[self.closed :] = [
            one if id(one.known) in open_ else one.closed() for one in done if one
        ]
        self.closed = len(self.segments)
        self.segments.append(last)

    def drop_calls(self) -> None:
        """Let go of what only those who interpret need: it leads to syntax and to values."""
        for known in (self.guards, self.summaries, self.names, self.globals, self.scopes):
            known.clear()

    def scope_of(self, function: FunctionFacts) -> dict[str, Value] | None:
        """The names around the class of a method, where that class is inside a function."""
        return None if function.cls is None else self.scopes.get(function.cls)

    def allocate(
        self, frame: Frame, cls: ClassFacts, owned: Ownership | None, node: ast.expr
    ) -> ObjectRef:
        """The object made at a place, one for each chain of calls that leads there."""
        key = (cls, id(node), frame.calls, owned)
        ref = self.sites.get(key)
        if ref is None:
            ref = ObjectRef(cls, owned, frame.module.span(node))
            self.sites[key] = ref
        return ref

    def self_ref(self, cls: ClassFacts) -> ObjectRef:
        """The one object that stands for every instance of a class, keyed by class and owner."""
        ref = self.selves.get(cls)
        if ref is None:
            ref = self.recalled.self_ref(cls) if self.recalled is not None else None
            ref = ref or ObjectRef(cls, self.class_owner(cls), None, label="self")
            self.selves[cls] = ref
        return ref

    def class_owner(self, cls: ClassFacts) -> Ownership | None:
        """The owner that a pack states, or a class by constructing its base as the draft's."""
        for one in self.project.mro(cls):
            stated = self.promises.of_class(one)
            if stated is not None:
                return stated.owned(stated.owner, one.name)
            if one.draft_flag is not None:
                flag, span = one.draft_flag
                return Ownership(DRAFT, f"class {one.name} passes {flag}=True to its base", span)
        return None

    def cell(self, ref: ObjectRef, attribute: str) -> Value | None:
        """What any method ever stored in a field; its writers are interpreted first."""
        cls = ref.cls
        if ref.pending is not None:
            ref.pending()
        if ref.recall is not None:
            ref.recall(attribute)
        if ref.birth is not None:
            self.basis.add(ref.birth.basis)
        if cls is None or (attribute in ref.settled and self.selves.get(cls) is not ref):
            return self._given(ref, attribute)
        own = self.self_ref(cls)
        if own.recall is not None:
            own.recall(attribute)
        key = (cls, attribute)
        if key not in self.writers:
            self.writers[key] = self._writers(cls, attribute)
        for writer, unit in self.writers[key]:
            if unit in self.known or (writer, cls) in self.done:
                self.basis.add(unit)
            else:
                self.run_root(self, writer, cls)
        return self._given(ref if attribute in ref.settled else own, attribute)

    def _given(self, ref: ObjectRef, attribute: str) -> Value | None:
        """What is in a cell; who reads it rests on all who gave it something of a model."""
        value, givers = ref.settled.get(attribute), ref.givers.get(attribute)
        several = givers if isinstance(givers, dict) else {givers: value}
        for giver, given in several.items():
            if given is None or telling(given) < 2:
                continue
            while isinstance(giver, Birth):
                self.basis.add(giver.basis)
                giver = giver.maker
            if giver is not None:
                self.basis.add(giver)
        return value

    def counted(self, ref: ObjectRef, attribute: str) -> Value | None:
        """The count that every object of a class keeps in a field, whoever it belongs to."""
        cls = ref.cls
        if cls is None or not any(attribute in one.stores for one in self.project.mro(cls)):
            return None
        value = self.cell(self.self_ref(cls), attribute)
        return value if isinstance(value, Size) and units_of(value.poly) is not None else None

    def storing(self, cls: ClassFacts | None, attribute: str) -> frozenset[str]:
        """The names of the methods that store a field of objects of a class."""
        key = cls, attribute
        if key not in self.stored_by:
            order = () if cls is None else self.project.mro(cls)
            found = (name for one in order for name in one.stores.get(attribute, ()))
            self.stored_by[key] = frozenset(found)
        return self.stored_by[key]

    def _writers(self, cls: ClassFacts, attribute: str) -> list[tuple[FunctionFacts, UnitKey]]:
        names: list[str] = []
        for one in self.project.mro(cls):
            names.extend(name for name in one.stores.get(attribute, ()) if name not in names)
        if not names:
            return []
        found = [self.project.method(cls, name) for name in dict.fromkeys(["__init__", *names])]
        return [(one, unit_of(one, cls)) for one in found if one is not None]

    def settle(self, key: tuple[ObjectRef, str], value: Value) -> None:
        """Add a value to the cell of a field."""
        ref, attribute = key
        if ref.recall is not None:
            ref.recall(attribute)
        known = ref.settled.get(attribute)
        several = self._several(ref, attribute, value)
        if key in self.renewed:
            ref.settled[attribute] = reduce(join, filter(None, several.values()))
        else:
            ref.settled[attribute] = value if known is None else join(known, value)

    def _several(self, ref: ObjectRef, attribute: str, value: Value) -> dict[Giver, Value | None]:
        """What each gave a field, this value included; nothing where one alone gave it all."""
        givers = ref.givers.get(attribute)
        if givers is None or givers == self.giver:
            ref.givers[attribute] = self.giver
            return {}
        if not isinstance(givers, dict):
            givers = ref.givers[attribute] = {givers: ref.settled.get(attribute)}
        mine = givers.get(self.giver)
        givers[self.giver] = value if mine is None else join(mine, value)
        return givers


def unit_of(function: FunctionFacts, cls: ClassFacts | None) -> UnitKey:
    """The unit that a function is when it is interpreted on its own."""
    return function.module.path, function.qualname, cls.name if cls else ""


def lookup_field(frame: Frame, ref: ObjectRef, attribute: str) -> Value | None:
    """The value of a field on this path, else in its cell, else None."""
    value = frame.state.heap.values.get((ref, attribute))
    if value is not None:
        return value
    if not ref.entry:
        return frame.machine.cell(ref, attribute)
    return frame.machine.counted(ref, attribute)
