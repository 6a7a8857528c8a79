"""Which findings are asked for: codes or prefixes of codes, for all files or for some."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapecheck.errors import ShapecheckError

# A crash is never hidden: the findings that it cost are not known.
_UNHIDDEN = "SHP901"


def expand(given: Iterable[str], codes: Sequence[str]) -> frozenset[str]:
    """The codes that codes, prefixes and comma-separated lists of both stand for."""
    found: set[str] = set()
    for word in (part.strip().upper() for one in given for part in one.split(",")):
        if not word:
            continue
        matching = [code for code in codes if code.startswith(word)]
        if not matching or not word.startswith("S"):
            near = difflib.get_close_matches(word, codes, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ShapecheckError(
                f"{word}: no rule has this code or prefix; {hint}`shapecheck rules` lists them"
            )
        found.update(matching)
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatterns:
    """Patterns of paths below a folder, as in a shell: `tests/*`, `*_generated.py`.

    `*` also matches slashes; a pattern that names a folder covers what is in it, and one without a
    slash matches a file or folder of that name anywhere.
    """

    folder: Path
    patterns: tuple[str, ...]

    def match(self, file: Path) -> bool:
        """Whether a file, given by its absolute path, is meant."""
        if not self.patterns or not file.is_relative_to(self.folder):
            return False
        path = file.relative_to(self.folder)
        ways = [path.as_posix(), *(one.as_posix() for one in path.parents[:-1])]
        return any(
            fnmatch.fnmatchcase(way if "/" in pattern else way.rpartition("/")[2], pattern)
            for pattern in (one.rstrip("/").removeprefix("./") for one in self.patterns)
            for way in ways
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIgnores:
    """Codes that are not reported in the files of each pattern."""

    rules: tuple[tuple[FilePatterns, frozenset[str]], ...] = ()

    @staticmethod
    def of(table: Mapping[str, Iterable[str]], codes: Sequence[str], folder: Path) -> FileIgnores:
        """The ignores of a table from pattern to codes; ShapecheckError for an unknown code."""
        return FileIgnores(
            rules=tuple(
                (FilePatterns(folder=folder, patterns=(pattern,)), expand(given, codes))
                for pattern, given in table.items()
            )
        )

    def hide(self, code: str, file: Path) -> bool:
        """Whether a finding of this code in this file is not reported."""
        return code != _UNHIDDEN and any(
            code in codes and patterns.match(file) for patterns, codes in self.rules
        )
