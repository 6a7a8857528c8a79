"""Paths that meet again: behind a branch, where a turn of a loop ends, and behind the loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from shapecheck.static.frames import State
from shapecheck.static.guards import Guard
from shapecheck.static.heap import join_heaps, written_apart
from shapecheck.static.unions import join
from shapecheck.static.values import UNKNOWN, Value


@dataclass(eq=False, slots=True)
class Exits:
    """The paths that left the turn of a loop before its end."""

    breaks: list[State] = field(default_factory=list[State])
    continues: list[State] = field(default_factory=list[State])

    def next_turn(self, ended: State) -> State:
        """The state after a turn: of its end, and of every `continue`."""
        while self.continues:
            ended = join_states(ended, self.continues.pop(), None)
        return ended

    def behind(self, after: State) -> State:
        """The state behind the loop: of its own end, and of every `break`."""
        for left in self.breaks:
            after = join_states(after, left, None)
        return after

    def behind_any_turn(
        self, after: State, before: State, ended: State, forgotten: dict[str, Value]
    ) -> State:
        """The same where one turn stood for all: its names were as `before` but for `forgotten`.

        What a turn did not set before its `break` may be what an earlier one left where it `ended`.
        """
        if ended.alive:
            self.breaks = [_of_any(left, before, ended, forgotten) for left in self.breaks]
        return self.behind(after)


def _of_any(left: State, before: State, ended: State, forgotten: dict[str, Value]) -> State:
    env = {name: join(UNKNOWN, value) for name, value in ended.env.items() if name not in left.env}
    for name, value in left.env.items():
        earlier = before.env.get(name)
        if earlier is not None and (value is earlier or value is forgotten.get(name)):
            value = join(earlier, ended.env.get(name, UNKNOWN))
        env[name] = value
    written = written_apart(left.heap.log, before.heap.log)
    own = {key: left.heap.values[key] for key in written}
    heap = join_heaps(left.heap, ended.heap, None)
    for key, value in own.items():
        heap.put(key, value)
    return State(env, heap)


def join_states(left: State, right: State, guard: Guard | None) -> State:
    """The state after two paths meet again; a path that ended does not count."""
    if not left.alive:
        return right
    if not right.alive:
        return left
    return State(join_names(left.env, right.env, guard), join_heaps(left.heap, right.heap, guard))


def join_names(
    left: dict[str, Value], right: dict[str, Value], guard: Guard | None
) -> dict[str, Value]:
    """The local names of both paths; one that a path does not have is unknown on it."""
    if left is right:
        return left
    result = dict(left)
    for name, value in right.items():
        mine = left.get(name)
        if mine is None:
            result[name] = join(UNKNOWN, value, guard)
        elif mine is not value:
            result[name] = join(mine, value, guard)
    if len(result) > len(right):
        for name in left.keys() - right.keys():
            result[name] = join(left[name], UNKNOWN, guard)
    return result
