"""The environment flags, parsed once: SHAPECHECK and SHAPECHECK_EVERY."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from shapecheck.errors import ShapecheckError

LEVEL_FLAG = "SHAPECHECK"
EVERY_FLAG = "SHAPECHECK_EVERY"
_STRIDE = re.compile("[1-9][0-9]{0,17}")


class Level(StrEnum):
    """How a broken contract is met, and what is checked."""

    OFF = "off"
    WARN = "warn"
    STRICT = "strict"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The level, and after the first calls of a method the stride between checked calls."""

    level: Level = Level.OFF
    every: int = 1


def parse(environ: Mapping[str, str]) -> Settings:
    """Settings from an environment; ShapecheckError lists the good values for a bad one."""
    level = level_named(environ.get(LEVEL_FLAG, "").strip() or Level.OFF, LEVEL_FLAG)
    every = environ.get(EVERY_FLAG, "").strip() or "1"
    if not _STRIDE.fullmatch(every):
        raise ShapecheckError(
            f"{EVERY_FLAG}={every!r} is no stride: use a whole number of 1 or more"
        )
    return Settings(level=level, every=int(every))


def level_named(name: str, flag: str) -> Level:
    """The level of that name; ShapecheckError lists the good ones, `flag` says where it stood."""
    try:
        return Level(name.lower())
    except ValueError:
        raise ShapecheckError(
            f"{flag}={name!r} is no level: use one of {', '.join(Level)}"
        ) from None


@cache
def settings() -> Settings:
    """The settings of this process, read on first use and then fixed."""
    return parse(os.environ)


def use(level: Level) -> None:
    """Make `level` the level of contracts decorated from now on, in child processes too."""
    os.environ[LEVEL_FLAG] = level
    settings.cache_clear()
