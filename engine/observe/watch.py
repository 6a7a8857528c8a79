"""Watching an engine: its phases, its turns, and every forward that a phase hands to a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.graphs.runner import Runner
from engine.observe.metrics import Watcher, watched_by
from engine.phases.draft_extend import DraftExtend
from engine.phases.draft_loop import ChosenLoop, DraftLoop
from engine.phases.verify import Verify
from engine.scheduler.scheduler import Scheduler

_Forwards = Verify | ChosenLoop | DraftLoop | DraftExtend
# What a forward is called; a whole loop of chosen candidates is one forward of its own.
_NAMES: Mapping[type, str] = {
    Verify: "verify",
    ChosenLoop: "draft loop",
    DraftLoop: "draft step",
    DraftExtend: "draft extend",
}


@contextmanager
def watched(scheduler: Scheduler, *watchers: Watcher) -> Iterator[None]:
    """These watchers are told of all that the scheduler's steps do; before and after it is free.

    A forward is named after its phase: "verify replay" when it runs on static buffers, else
    "verify forward".
    """
    metrics = scheduler.metrics
    before = metrics.watchers
    # A proposer may hold a loop under two names.
    phases = {id(phase): phase for phase in _with_forwards(scheduler)}.values()
    forwards = [(phase, _name(phase), phase.forward) for phase in phases]
    metrics.watchers = (*before, *watchers)
    for phase, name, forward in forwards:
        phase.forward = _told(forward, name, watchers)
    try:
        yield
    finally:
        metrics.watchers = before
        for phase, _, forward in forwards:
            phase.forward = forward


def _with_forwards(scheduler: Scheduler) -> list[_Forwards]:
    phases: list[object] = []
    for step in (scheduler.step, scheduler.narrow):
        if step is not None:
            phases += [step.verify, *vars(step.proposer).values()]
    return [phase for phase in phases if isinstance(phase, _Forwards)]


def _name(phase: _Forwards) -> str:
    kind = "replay" if isinstance(phase.forward, Runner) else "forward"
    return f"{_NAMES[type(phase)]} {kind}"


def _told(
    forward: Callable[[Any], Any], name: str, watchers: tuple[Watcher, ...]
) -> Callable[[Any], Any]:
    def call(live: Any) -> Any:
        with watched_by(watchers, name):
            return forward(live)

    return call
