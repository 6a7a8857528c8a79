"""Versions and ranges of them, ordered as Python packages order theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

_VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[.-]?(?P<stage>dev|alpha|beta|rc|post|a|b|c)[.-]?(?P<number>\d*))?"
    r"(?:\.dev\d+)?(?:\+[\w.]+)?$"
)
_STAGES = {"dev": -4, "alpha": -3, "a": -3, "beta": -2, "b": -2, "rc": -1, "c": -1, "post": 1}
Key = tuple[tuple[int, ...], int, int]

_LIMIT = re.compile(r"\s*(?P<operator>>=|<=|==|!=|>|<)\s*(?P<version>\S+)\s*$")
_OPERATORS: dict[str, Callable[[Key, Key], bool]] = {
    ">=": ge,
    "<=": le,
    "==": eq,
    "!=": ne,
    ">": gt,
    "<": lt,
}


def version_key(text: str) -> Key | None:
    """What a version is ordered by, or None when the text is no version."""
    match = _VERSION.match(text.strip())
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    stage = _STAGES.get(match["stage"] or "", 0)
    return tuple(release), stage, int(match["number"] or 0)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Every limit holds at once; no limit holds for every version."""

    text: str
    limits: tuple[tuple[str, Key], ...]

    @staticmethod
    def parse(text: str) -> VersionRange:
        """The range of `>=0.4.8,<0.5.12`; ValueError names the limit that cannot be read."""
        limits: list[tuple[str, Key]] = []
        for part in text.split(",") if text.strip() else ():
            match = _LIMIT.match(part)
            key = version_key(match["version"]) if match else None
            if match is None or key is None:
                raise ValueError(
                    f"{part.strip()!r} is no limit; write one such as >=0.4.8 or <0.5.12"
                )
            limits.append((match["operator"], key))
        return VersionRange(text, tuple(limits))

    def holds(self, version: str) -> bool:
        """Whether a version lies in the range; a text that is no version lies in none."""
        key = version_key(version)
        return key is not None and all(
            _OPERATORS[operator](key, limit) for operator, limit in self.limits
        )
