"""Where the names of a contract stand, and which of them nothing ties to a size.

Read from hints and from source alike, so `P` is whatever a reader says of a place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")
Named = dict[str, list[P]]
_UNCOUNTED = (
    "{at} indexes {name}, and no tensor that crosses with it has {name!r}, so nothing would say "
    "how many there are; let the indexed tensor cross too, or remove the mark"
)
_UNTIED = (
    "{name!r} occurs only in {at}{why}, so it would bind to anything; use it in a second tensor, "
    "or write the size it has"
)
_EMPTY = (
    "{where} names no tensor and no carrier, so its contract checks nothing; annotate what "
    "crosses, or remove @contract"
)


class Loose(NamedTuple, Generic[P]):
    """A name that would bind to anything, or the mark along an axis that no tensor has by then."""

    name: str
    place: P
    is_mark: bool

    def fault(self, at: str, *, per_call: bool, binds: bool) -> str | None:
        """What SHP103 says of it at the place that `at` names; None where it may be so.

        `binds` says that no Dims is in reach, so that the names of Dims bind per call as well.
        """
        if self.is_mark:
            # Along a name of Dims, a trace has the number where the contract has none.
            return _UNCOUNTED.format(at=at, name=self.name) if per_call else None
        if not (per_call or binds):
            return None
        why = "" if per_call else " and no Dims is in reach (`self.dims` or a Dims parameter)"
        return _UNTIED.format(at=at, name=self.name, why=why)


@dataclass(slots=True)
class Places(Generic[P]):
    """The places of every name: in shapes, and in marks along whose axis values count.

    `ids` count along the vocabulary of a model, which no tensor has to have.
    """

    shapes: Named[P] = field(default_factory=dict[str, "list[P]"])
    marks: Named[P] = field(default_factory=dict[str, "list[P]"])
    ids: Named[P] = field(default_factory=dict[str, "list[P]"])

    def add(self, other: Places[P], times: int = 1) -> None:
        """Count another part of the contract too."""
        for own, more in zip(self.kinds(), other.kinds(), strict=True):
            for name, places in more.items():
                own.setdefault(name, []).extend(places * times)

    def marked(self, name: str) -> list[P]:
        """The places of a name in marks of either kind."""
        return [*self.marks.get(name, ()), *self.ids.get(name, ())]

    def kinds(self) -> tuple[Named[P], Named[P], Named[P]]:
        """Shapes, marks and ids, in this order."""
        return self.shapes, self.marks, self.ids


def empty(where: str) -> str:
    """What SHP103 says of a contract without a tensor."""
    return _EMPTY.format(where=where)


def least(arms: Sequence[Places[P]]) -> Places[P]:
    """For each name the places that it has in one alternative, of all the one with the fewest."""
    made = Places[P]()
    for name in dict.fromkeys(name for arm in arms for kind in arm.kinds() for name in kind):
        having = [arm for arm in arms if name in arm.shapes or name in arm.marks]
        # Of as many places those without a shape: there the mark says nothing.
        arm = min(
            having or [arm for arm in arms if name in arm.ids],
            key=lambda one, name=name: (
                len(one.shapes.get(name, ())) + len(one.marked(name)),
                name in one.shapes,
            ),
        )
        kinds = ({name: kind[name]} if name in kind else {} for kind in arm.kinds())
        made.add(Places(*kinds))
    return made


def loose(arguments: Places[P], results: Sequence[Places[P]]) -> Iterator[Loose[P]]:
    """Every name that stands at one place alone, and every mark whose axis is not there by then.

    Arguments are judged before there is a result, so what a result has says nothing of them.
    """
    total, tied = Places[P](), dict[str, int]()
    for part in (arguments, *results):
        total.add(part)
        for name in dict.fromkeys((*part.marks, *part.ids)):
            if name in arguments.shapes or name in part.shapes:
                tied[name] = tied.get(name, 0) + len(part.marked(name))
            elif name in part.marks:
                for place in dict.fromkeys(part.marks[name]):
                    yield Loose(name, place, is_mark=True)
    for name, places in total.shapes.items():
        if len(places) + tied.get(name, 0) == 1:
            yield Loose(name, places[0], is_mark=False)
