"""What reads data in a direction of a contract: it waits until every name is bound.

The axis of an index may stand in a tensor that comes after it, or in one that may be absent, and
the verdict is the same wherever the two are written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shapecheck.dims.parse import Axis
from shapecheck.runtime.numbers import Numbers, expression, variable
from shapecheck.runtime.text import INDENT, Text

Fail = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Held:
    """A value to be read: its expression, or the list of those that turned out to be there."""

    code: str
    is_list: bool


@dataclass(slots=True, eq=False)
class Readings:
    """The readings of one direction; ranges come first, since invariants may look up with them."""

    text: Text
    start: int
    conditional: int
    _lists: list[str] = field(default_factory=list[str])
    _indices: list[tuple[Held, int, Axis, int | None]] = field(
        default_factory=list["tuple[Held, int, Axis, int | None]"]
    )
    _invariants: list[tuple[Held, int, str]] = field(default_factory=list["tuple[Held, int, str]"])

    def hold(self, code: str, at: str) -> Held:
        """Keep a value for later, where it may be absent or one of several, with its places."""
        if self.text.conditional == self.conditional:
            return Held(code, is_list=False)
        name = self.text.fresh("held")
        self._lists.append(name)
        self.text.line(f"{name}.append(({code}, ({at})))")
        return Held(name, is_list=True)

    def index(self, held: Held, site: int, axis: Axis, pad: int | None) -> None:
        """The values lie in the axis or are the pad, if the axis has a number."""
        self._indices.append((held, site, axis, pad))

    def invariant(self, held: Held, site: int, name: str) -> None:
        """The invariant that the global `name` holds is true of the value."""
        self._invariants.append((held, site, name))

    def emit(self, numbers: Numbers, fail: Fail) -> None:
        """Write the readings; `fail` spells the call that judges."""
        if not (self._indices or self._invariants):
            return
        with self.text.block("if not _sc_compiling():"):
            for held, site, axis, pad in self._indices:
                self._index(held, site, axis, pad, numbers, fail)
            for held, site, name in self._invariants:
                self._each(held, lambda code, at, s=site, n=name: fail("holds", s, n, code, at=at))
        indent = INDENT * self.text.depth
        self.text.lines[self.start : self.start] = [f"{indent}{name} = []" for name in self._lists]

    def _index(
        self,
        held: Held,
        site: int,
        axis: Axis,
        pad: int | None,
        numbers: Numbers,
        fail: Fail,
    ) -> None:
        names, size = axis.symbols(), expression(axis)
        if not names <= set(numbers.known()):
            return

        def judge(code: str, at: str | None) -> str:
            return fail("index", site, code, size, pad, at=at)

        maybe = sorted(names & numbers.maybe)
        if not maybe:
            self._each(held, judge)
            return
        known = " and ".join(f"{variable(name)} is not None" for name in maybe)
        with self.text.block(f"if {known}:"):
            self._each(held, judge)

    def _each(self, held: Held, judge: Callable[[str, str | None], str]) -> None:
        if not held.is_list:
            self.text.line(judge(held.code, None))
            return
        value, at = self.text.fresh("v"), self.text.fresh("at")
        with self.text.block(f"for {value}, {at} in {held.code}:"):
            self.text.line(judge(value, at))
