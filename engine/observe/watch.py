"""Watching an engine: its phases, its turns, and every forward that a phase hands to a graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, cast

from engine.graphs.runner import Runner
from engine.observe.metrics import Watcher, watched_by
from engine.scheduler.scheduler import Scheduler


class _Phase(Protocol):
    """A phase whose forward a graph may replay."""

    forward: Callable[..., object]


@contextmanager
def watched(scheduler: Scheduler, *watchers: Watcher) -> Iterator[None]:
    """These watchers are told of all that the scheduler's steps do; before and after it is free.

    A forward is named after its phase: "verify replay" when it runs on static buffers, else
    "verify forward".
    """
    metrics = scheduler.metrics
    before = metrics.watchers
    forwards = [(phase, phase.forward) for phase in _with_forwards(scheduler)]
    metrics.watchers = (*before, *watchers)
    for phase, forward in forwards:
        phase.forward = _told(forward, _name(phase, forward), watchers)
    try:
        yield
    finally:
        metrics.watchers = before
        for phase, forward in forwards:
            phase.forward = forward


def _with_forwards(scheduler: Scheduler) -> list[_Phase]:
    phases: list[object] = []
    for step in (scheduler.step, scheduler.narrow):
        if step is not None:
            phases += [step.verify, *vars(step.proposer).values()]
    # A model has a forward as well, but it is no phase: it knows no Dims.
    return [
        cast("_Phase", phase)
        for phase in phases
        if hasattr(phase, "forward") and hasattr(phase, "dims")
    ]


def _name(phase: object, forward: object) -> str:
    words = re.findall("[A-Z][a-z]*", type(phase).__name__)
    kind = "replay" if isinstance(forward, Runner) else "forward"
    return " ".join([*words, kind]).lower()


def _told(
    forward: Callable[..., object], name: str, watchers: tuple[Watcher, ...]
) -> Callable[..., object]:
    def call(live: object) -> object:
        with watched_by(watchers, name):
            return forward(live)

    return call
