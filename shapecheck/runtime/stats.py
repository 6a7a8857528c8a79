"""How often each contract was called and broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(slots=True, eq=False)
class Tally:
    """The running counts of one contract; `calls` is a one-element list that plans count in."""

    where: str
    calls: list[int] = field(default_factory=lambda: [0])
    violations: Counter[str] = field(default_factory=Counter[str])
    seen: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Calls of one contract, and its violations by code."""

    calls: int
    violations: Mapping[str, int]


_tallies: dict[str, Tally] = {}


def tally(module: str, where: str) -> Tally:
    """The tally of a contract, made on first use."""
    return _tallies.setdefault(f"{module}.{where}", Tally(where))


def stats() -> dict[str, Counts]:
    """Counts per contract that is on, by `module.Class.method`; a compiled graph does not count."""
    return {
        name: Counts(calls=found.calls[0], violations=MappingProxyType(dict(found.violations)))
        for name, found in sorted(_tallies.items())
    }
