"""The cases of `cases.json`: a release with a bug, one with its fix, and where each is decided."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from shapecheck.static.release import Release, parse_release

CASES = Path(__file__).with_name("cases.json")
_SITE = re.compile(r"(?P<path>[^:\s]+\.py):(?P<first>\d+)(?:-(?P<last>\d+))?$")


class Strict(BaseModel):
    """Data from a file: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Site(Strict):
    """Lines of one file of a release, both ends included."""

    path: str
    first: int = Field(ge=1)
    last: int = Field(ge=1)

    def holds(self, path: str, line: int) -> bool:
        """Whether a place lies in these lines."""
        return path == self.path and self.first <= line <= self.last


def _site(text: object) -> object:
    match = _SITE.match(text) if isinstance(text, str) else None
    if match is None:
        return text
    return {
        "path": match["path"],
        "first": int(match["first"]),
        "last": int(match["last"] or match["first"]),
    }


class Tree(Strict):
    """One release: its wheel, the parts of it that are linted, and the lines of the bug or fix."""

    release: str = Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9._]+$")
    subpaths: tuple[str, ...] = Field(min_length=1)
    sites: tuple[Annotated[Site, BeforeValidator(_site)], ...] = Field(min_length=1)

    @property
    def package(self) -> str:
        """The folder of the whole package inside the wheel."""
        return self.subpaths[0].split("/")[0]

    @property
    def wheel(self) -> Release:
        """What the fetcher takes."""
        return parse_release(f"pypi:{self.release}")

    def targets(self, *, whole: bool) -> tuple[str, ...]:
        """What `shapecheck lint` is given."""
        parts = (self.package,) if whole else self.subpaths
        return tuple(f"pypi:{self.release}:{part}" for part in parts)


class Names(Strict):
    """The sizes that were confused, as sums of products; any of a side will do."""

    wrong: tuple[str, ...] = Field(min_length=1)
    right: tuple[str, ...] = Field(min_length=1)


class Case(Strict):
    """One known bug; `aliases` are the names that a size has in this engine."""

    id: str
    engine: str
    what: str
    names: Names
    aliases: dict[str, tuple[str, ...]] = {}
    buggy: Tree
    fixed: Tree
    cells: tuple[str, ...] = ()
    needs: str = ""


class Cases(Strict):
    """The whole file."""

    version: int
    cases: tuple[Case, ...]


@cache
def load_cases() -> tuple[Case, ...]:
    """Every case, in the order of the file."""
    return Cases.model_validate_json(CASES.read_bytes()).cases
