"""Lists and dicts that are changed where they are: all who hold one see it, or know it no more."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from shapecheck.static.frames import Frame
from shapecheck.static.stores import store_attribute
from shapecheck.static.unions import lift
from shapecheck.static.values import (
    UNKNOWN,
    Instance,
    Items,
    Mapping,
    Plain,
    Sequence,
    Value,
    plain_values,
)


def holds_items(value: Value) -> bool:
    """Whether it may be a list or a dict."""
    return any(isinstance(one, (Sequence, Items, Mapping)) for one in plain_values(value))


def change(
    frame: Frame,
    target: ast.expr,
    before: Value,
    changed: Callable[[Plain], Value],
    source: ast.expr,
) -> None:
    """What stands at `target` is another list or dict now, under each of its names on this path."""
    after = lift(changed, before)
    env, heap = frame.state.env, frame.state.heap
    for name in [name for name, value in env.items() if value is before]:
        env[name] = after
    for key in [key for key, value in heap.values.items() if value is before]:
        heap.put(key, after)
    own = frame.receiver
    if isinstance(own, Instance):
        for name in [name for name, value in own.ref.settled.items() if value is before]:
            store_attribute(frame, own, name, after, source)
    if any(before is one for one in frame.handed):
        frame.changed.append(before)
    if isinstance(target, ast.Name):
        env[target.id] = after
    elif isinstance(target, ast.Attribute):
        holder = frame.machine.evaluate(frame, target.value)
        store_attribute(frame, holder, target.attr, after, source)


def handed_over(names: Iterable[Value]) -> list[Value]:
    """The lists and dicts among what a call is given: it may change them."""
    return [one for one in names if isinstance(one, (Sequence, Items, Mapping))]


def forget_changed(frame: Frame, changed: Iterable[Value]) -> None:
    """What a call changed is not known any more to those that handed it over."""
    for before in changed:
        for name in [name for name, value in frame.state.env.items() if value is before]:
            frame.state.env[name] = UNKNOWN
        if any(before is one for one in frame.handed):
            frame.changed.append(before)
