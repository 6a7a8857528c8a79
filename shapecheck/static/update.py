"""A run brought up to date after bodies were edited: what rests on them is interpreted again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from shapecheck.static.analyse import analyse
from shapecheck.static.analysis import Analysis
from shapecheck.static.codec import CodecError
from shapecheck.static.edits import Edit, compare
from shapecheck.static.entries import Entries
from shapecheck.static.packs.model import Pack
from shapecheck.static.prefilter import Weight, speaks
from shapecheck.static.recall import RecallError
from shapecheck.static.workers import Progress

_MOST = 0.5  # of the units: beyond, interpreting everything is as fast


def updated(
    old: Analysis,
    now: Mapping[str, str],
    edited: Mapping[str, str],
    entries: Entries,
    *,
    weigh: Callable[[str], Weight],
    packs: tuple[Pack, ...],
    progress: Progress | None = None,
) -> Analysis | None:
    """The analysis of the texts as they are `now`, or None where it has to be found out anew.

    `edited` are those that were others when it was made.
    A unit that is interpreted again asks for whatever it needs, as it did among the others.
    """
    edits: dict[str, Edit] = {}
    for path, text in edited.items():
        edit = compare(text, now[path], path=path, weigh=weigh)
        if edit is None or speaks(text) is not speaks(now[path]):
            return None
        edits[path] = edit
    touched = old.units.touched_by(body for edit in edits.values() for body in edit.bodies)
    if len(touched) > _MOST * len(old.units.bases):
        return None
    states = tuple(state.after(edits, touched) for state in old.states)
    try:
        again = analyse(entries, progress, packs, states, only=touched, broken=old.unreadable)
    except (RecallError, CodecError):
        again = analyse(entries, progress, packs, only=touched, broken=old.unreadable)

    def move(path: str, line: int) -> int:
        return edits[path].line(line) if path in edits else line

    try:
        units = old.units.replaced(touched, again.units, move, edits)
    except CodecError:
        return None
    return replace(
        old,
        units=units,
        lines={**old.lines, **again.lines},
        unreadable={**old.unreadable, **again.unreadable},
        crashes=again.crashes,
        loaded={**now, **again.loaded},
        absent=old.absent | again.absent,
        states=states,
    )
