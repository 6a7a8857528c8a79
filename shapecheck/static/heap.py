"""The fields of objects along one path, with a log of writes that makes joining cheap."""

from __future__ import annotations

from dataclasses import dataclass, field

from shapecheck.static.guards import Guard
from shapecheck.static.unions import join
from shapecheck.static.values import UNKNOWN, ObjectRef, Value

Key = tuple[ObjectRef, str]


@dataclass(eq=False, slots=True)
class _Entry:
    """One write, linked to the writes before it; paths that fork share their past."""

    key: Key
    past: _Entry | None
    depth: int


@dataclass(eq=False, slots=True)
class Heap:
    """Field values on one path."""

    values: dict[Key, Value] = field(default_factory=dict[Key, Value])
    log: _Entry | None = None

    def put(self, key: Key, value: Value) -> None:
        """Store a value, from here on."""
        self.values[key] = value
        self.log = _Entry(key, self.log, self.log.depth + 1 if self.log else 1)

    def fork(self) -> Heap:
        """An independent heap with the same contents and past."""
        return Heap(dict(self.values), self.log)


def join_heaps(left: Heap, right: Heap, guard: Guard | None) -> Heap:
    """The heap after two paths meet: `left` under the guard, `right` under its negation.

    `left` is used up. Only what was written since the paths parted is looked at.
    """
    if left is right:
        return left
    for key in written_apart(left.log, right.log):
        mine, theirs = left.values.get(key), right.values.get(key)
        if mine is theirs:
            continue
        # An object made on one path only is whole on it; a field of an older one is not.
        lost = None if key[0].site is not None else UNKNOWN
        mine, theirs = mine or lost, theirs or lost
        if mine is None or theirs is None:
            kept = theirs if mine is None else mine
            if kept is not None:
                left.put(key, kept)
        else:
            left.put(key, join(mine, theirs, guard))
    return left


def written_apart(left: _Entry | None, right: _Entry | None) -> dict[Key, None]:
    """The keys written since two logs parted, in a fixed order."""
    keys: dict[Key, None] = {}
    while left is not right:
        if right is None or (left is not None and left.depth >= right.depth):
            if left is None:
                break
            keys[left.key] = None
            left = left.past
        else:
            keys[right.key] = None
            right = right.past
    return keys
