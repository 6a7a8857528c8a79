"""Watching an engine: its phases, its turns, and every forward that a phase hands to a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.graphs.runner import Runner
from engine.observe.metrics import Watcher, watched_by
from engine.phases.draft_extend import DraftExtend
from engine.phases.draft_loop import ChosenLoop, DraftLoop, DrawnLoop
from engine.phases.verify import Verify
from engine.scheduler.scheduler import Scheduler

_Forwards = Verify | ChosenLoop | DrawnLoop | DraftLoop | DraftExtend
# What the forwards of a phase are called, by the attributes that hold them.
_NAMES: Mapping[type, Mapping[str, str]] = {
    Verify: {"forward": "verify"},
    ChosenLoop: {"forward": "draft loop"},
    DrawnLoop: {"forward": "draft loop", "truncating": "draft loop"},
    DraftLoop: {"forward": "draft step"},
    DraftExtend: {"forward": "draft extend"},
}


@contextmanager
def watched(scheduler: Scheduler, *watchers: Watcher) -> Iterator[None]:
    """These watchers are told of all that the scheduler's steps do; before and after it is free.

    A forward is named after its phase: "verify replay" when it runs on static buffers, else
    "verify forward".
    """
    metrics = scheduler.metrics
    before = metrics.watchers
    forwards = [
        (phase, attribute, name, getattr(phase, attribute))
        for phase in _with_forwards(scheduler)
        for attribute, name in _NAMES[type(phase)].items()
    ]
    metrics.watchers = (*before, *watchers)
    for phase, attribute, name, forward in forwards:
        setattr(phase, attribute, _told(forward, name, watchers))
    try:
        yield
    finally:
        metrics.watchers = before
        for phase, attribute, _, forward in forwards:
            setattr(phase, attribute, forward)


def _with_forwards(scheduler: Scheduler) -> list[_Forwards]:
    phases: list[object] = []
    for step in (scheduler.step, scheduler.narrow):
        if step is not None:
            phases += [step.verify, *vars(step.proposer).values()]
    return [phase for phase in phases if isinstance(phase, _Forwards)]


def _told(
    forward: Callable[[Any], Any], name: str, watchers: tuple[Watcher, ...]
) -> Callable[[Any], Any]:
    kind = "replay" if isinstance(forward, Runner) else "forward"

    def call(live: Any) -> Any:
        with watched_by(watchers, f"{name} {kind}"):
            return forward(live)

    return call
