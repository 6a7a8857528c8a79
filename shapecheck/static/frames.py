"""Frames: one activation of a function each, and its state on the path that is followed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shapecheck.static.facts import EqualityTest
from shapecheck.static.guards import Guard
from shapecheck.static.heap import Heap
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.symbols import Ownership
from shapecheck.static.values import Value

if TYPE_CHECKING:
    from shapecheck.static.machine import Machine
    from shapecheck.static.paths import Exits

Calls = tuple[int, ...]  # the chain of calls that leads to a frame, by the identity of its nodes


@dataclass(eq=False, slots=True)
class State:
    """The flow-sensitive part: local names and the fields of objects on this path."""

    env: dict[str, Value]
    heap: Heap
    alive: bool = True

    def copy(self) -> State:
        """An independent state with the same contents."""
        return State(dict(self.env), self.heap.fork(), self.alive)


@dataclass(eq=False, slots=True)
class Frame:
    """One activation of a function; `acting` is the model whose object is at work, if known.

    `seen` holds the names as the functions inside it see them, `shared` those that they bind anew.
    `handed` are the lists and dicts that it was given, `changed` those of them that it changed.
    """

    machine: Machine
    module: ModuleFacts
    function: FunctionFacts | None
    cls: ClassFacts | None
    state: State
    depth: int = 0
    stack: tuple[FunctionFacts, ...] = ()
    scope: dict[str, Value] | None = None
    receiver: Value | None = None
    calls: Calls = ()
    guards: list[Guard] = field(default_factory=list[Guard])
    tests: list[EqualityTest] = field(default_factory=list[EqualityTest])
    returns: list[tuple[Value, tuple[Guard, ...], Heap]] = field(
        default_factory=list[tuple[Value, tuple[Guard, ...], Heap]]
    )
    acting: Ownership | None = None
    loops: list[Exits] = field(default_factory=list["Exits"])
    seen: dict[str, Value] | None = None
    shared: frozenset[str] = frozenset()
    handed: list[Value] = field(default_factory=list[Value])
    changed: list[Value] = field(default_factory=list[Value])

    def show_names(self) -> None:
        """Let the functions inside this one see its names as they are now."""
        if self.seen is not None:
            self.seen |= self.state.env

    @property
    def where(self) -> str:
        """The qualified name of the function, for messages."""
        return self.function.qualname if self.function else self.module.name

    def guard(self, test: ast.expr, sense: bool) -> Guard:
        """The guard of a test of this function in one sense, made once."""
        guards = self.machine.guards
        known = guards.get(test)
        if known is None:
            holds = Guard.of(test, True, self.module.path)
            known = guards[test] = holds, holds.negated()
        return known[0] if sense else known[1]
