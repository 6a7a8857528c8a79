"""What a run found out, before the rules judge it: plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from shapecheck.diagnostics.model import Diagnostic, Span
from shapecheck.static.states import FieldState
from shapecheck.static.units import Units, joined

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The facts of a run, unit by unit, and the files that they rest on.

    `loaded` are the texts of files by path, `absent` the paths where a module was looked for,
    `states` what the fields held when its parts ended, where a later run may ask.
    """

    units: Units
    lines: Mapping[str, int]
    unreadable: Mapping[str, Diagnostic]
    crashes: Mapping[str, Diagnostic]
    drift: tuple[Diagnostic, ...]
    contracts: frozenset[tuple[str, Span]]
    loaded: Mapping[str, str]
    absent: frozenset[str]
    states: tuple[FieldState, ...] = ()


def together(parts: list[Analysis]) -> Analysis:
    """The parts of one run as one; what two of them saw is as the first of them saw it."""
    return Analysis(
        units=joined(one.units for one in parts),
        lines=_merged(one.lines for one in parts),
        unreadable=_merged(one.unreadable for one in parts),
        crashes=_merged(one.crashes for one in parts),
        drift=tuple(fault for one in parts for fault in one.drift),
        contracts=frozenset[tuple[str, Span]]().union(*(one.contracts for one in parts)),
        loaded=_merged(one.loaded for one in parts),
        absent=frozenset[str]().union(*(one.absent for one in parts)),
        states=tuple(state for one in parts for state in one.states),
    )


def _merged(parts: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """The first of each key, sorted by key."""
    first: dict[str, T] = {}
    for part in parts:
        first = {**part, **first}
    return dict(sorted(first.items()))
