"""What each function that is interpreted on its own saw, and what that rests on: the unit of reuse.

The facts of a unit come in segments, since interpreting it may start another unit in its middle;
the segments of all units, by their names and then in order, are the facts of a run, whoever started
whom. After an edit of some bodies only the units that rest on one of them are interpreted anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shapecheck.static.codec import FACTS, CodecError, Move, decode, encode, stay
from shapecheck.static.facts import Facts

Body = tuple[str, str]  # path, qualified name: a function whose body was interpreted
UnitKey = tuple[str, str, str]  # path, qualified name, class: a unit whose cells were read
Basis = frozenset["Body | UnitKey | Basis"]


@dataclass(eq=False, slots=True)
class Segment:
    """What one unit saw without a break, as facts, as bytes that can be sent and kept, or both."""

    unit: UnitKey
    data: bytes = b""
    known: Facts | None = None

    def __bool__(self) -> bool:
        return bool(self.data or self.known)

    def facts(self) -> Facts:
        """The facts; CodecError when the bytes are damaged."""
        if self.known is None:
            made = decode(self.data, FACTS)
            if not isinstance(made, Facts):
                raise CodecError("the bytes of a segment hold something else")
            self.known = made
        return self.known

    def closed(self) -> Segment:
        """The segment as bytes alone."""
        return Segment(self.unit, self.data or encode(self.known))

    def moved(self, move: Move, paths: Iterable[bytes]) -> Segment:
        """The segment with its places in these files moved; CodecError where one is gone."""
        if not any(path in self.data for path in paths):
            return self
        made = decode(self.data, FACTS, move)
        if not isinstance(made, Facts):
            raise CodecError("the bytes of a segment hold something else")
        return Segment(self.unit, b"" if move is not stay else self.data, made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The segments of a run in order, and what each unit rests on."""

    segments: tuple[Segment, ...]
    bases: Mapping[UnitKey, Basis]

    @classmethod
    def of(cls, segments: Iterable[Segment], bases: Mapping[UnitKey, Basis]) -> Units:
        """The units with these segments, those of each in the order in which it saw them."""
        return cls(segments=tuple(sorted(segments, key=lambda one: one.unit)), bases=bases)

    def facts(self) -> Facts:
        """Everything that all units saw."""
        every = Facts()
        for segment in self.segments:
            every.add(segment.facts())
        return every

    def closed(self) -> Units:
        """The same with every segment as bytes."""
        return Units(segments=tuple(one.closed() for one in self.segments), bases=self.bases)

    def touched_by(self, changed: Iterable[Body]) -> frozenset[UnitKey]:
        """The units that rest on one of these bodies, or on a unit that does."""
        changed = frozenset(changed)
        # Bases share most of what is in them: each is looked at once, by its identity.
        users: dict[Body | UnitKey | int, list[UnitKey | int]] = {}
        bases: list[tuple[UnitKey | int, Basis]] = list(self.bases.items())
        for user, basis in bases:  # grows meanwhile
            for part in basis:
                one = part if isinstance(part, tuple) else id(part)
                if one not in users and not isinstance(part, tuple):
                    bases.append((id(part), part))
                users.setdefault(one, []).append(user)
        waiting: list[Body | UnitKey | int] = [
            one for one in users if isinstance(one, tuple) and is_inside(one, changed)
        ]
        touched: set[UnitKey | int] = set()
        while waiting:
            for user in users.get(waiting.pop(), ()):
                if user not in touched:
                    touched.add(user)
                    waiting.append(user)
        return frozenset(one for one in touched if isinstance(one, tuple))

    def replaced(
        self, units: frozenset[UnitKey], by: Units, move: Move, paths: Iterable[str]
    ) -> Units:
        """These units, and those that only `by` knows, as they are in `by`; all others moved.

        `paths` are the files in which anything moved. CodecError where a place that is kept is
        gone.
        """
        moving = [path.encode("utf-8", "surrogatepass") for path in paths]
        old = [one.moved(move, moving) for one in self.segments if one.unit not in units]
        new = [one for one in by.segments if one.unit in units or one.unit not in self.bases]
        kept = {key: basis for key, basis in self.bases.items() if key not in units}
        return Units.of((*old, *new), {**by.bases, **kept})


@dataclass(eq=False, slots=True)
class Birth:
    """The run of a constructor that waited, or of a function whose result is remembered.

    `maker` is at work where the object was made, None where any unit gets the same; `basis` is
    there once it ran.
    """

    maker: Giver | None = None
    basis: Basis = frozenset()

    def rests_on(self) -> frozenset[Body | UnitKey]:
        """Every body and unit that what it gives rests on."""
        return frozenset((*flat(self.basis), *resting(self.maker)))


Giver = UnitKey | Birth  # what puts values in fields


def resting(giver: Giver | None) -> frozenset[Body | UnitKey]:
    """What it rests on that this one is at work, and works as it does."""
    if giver is None:
        return frozenset()
    return giver.rests_on() if isinstance(giver, Birth) else frozenset((giver,))


def joined(parts: Iterable[Units]) -> Units:
    """The units of parts that were interpreted apart, as one run.

    A text that two parts read says the same in both: the first of them counts.
    """
    segments: list[Segment] = []
    bases: dict[UnitKey, Basis] = {}
    for part in parts:
        segments += [
            one
            for one in part.segments
            if one.unit != whole_text(one.unit[0]) or one.unit not in bases
        ]
        for key, basis in part.bases.items():
            bases[key] = frozenset((bases[key], basis)) if key in bases else basis
    return Units.of(segments, bases)


def flat(basis: Basis) -> set[Body | UnitKey]:
    """The bodies and units of a basis and of all those in it."""
    found: set[Body | UnitKey] = set()
    seen: set[int] = set()
    waiting = [basis]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for part in one:
            if isinstance(part, tuple):
                found.add(part)
            else:
                waiting.append(part)
    return found


def whole_text(path: str) -> UnitKey:
    """The unit of what a file says by its text alone: it rests on every body of the file."""
    return path, "", ""


def is_inside(one: Body | UnitKey, changed: frozenset[Body]) -> bool:
    """Whether a body, the function it is nested in, or any in a whole text changed."""
    if len(one) == 3:
        return False
    path, name = one
    if (path, name) in changed:
        return True
    return any(
        path == other and (not name or name.startswith(f"{outer}.")) for other, outer in changed
    )
