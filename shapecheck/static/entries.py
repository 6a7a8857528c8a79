"""The files a run starts from: found below the targets, read, and filtered by their text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.static.contracts.marks import may_hold_contracts
from shapecheck.static.graph_keys import may_hold_keys
from shapecheck.static.loader import Source, UnreadableFileError, decode_source, read_source
from shapecheck.static.loader import unreadable as unreadable_file
from shapecheck.static.prefilter import can_matter
from shapecheck.static.project import find_files
from shapecheck.static.suppressions import Suppression, find_suppressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What lies below the targets of one import root; `kept` are the files worth analysing.

    `spoken` are others that may say something by their text alone.
    """

    root: Path
    kept: tuple[tuple[Path, Source], ...]
    spoken: tuple[tuple[Path, Source], ...]
    covered: frozenset[str]
    lines: int
    suppressions: tuple[Suppression, ...]
    unreadable: Mapping[str, Diagnostic]

    @property
    def states(self) -> dict[str, str]:
        """By path, why a file is not readable; the empty text for a file worth analysing."""
        unread = {path: one.message for path, one in self.unreadable.items()}
        return unread | {source.path: "" for _, source in self.read}

    @property
    def read(self) -> tuple[tuple[Path, Source], ...]:
        """The files whose text takes part, whoever imports them."""
        return *self.kept, *self.spoken

    @property
    def skipped(self) -> int:
        """How many readable files the prefilter left out."""
        return len(self.covered) - len(self.kept) - len(self.unreadable)


def read_entries(
    root: Path,
    targets: list[Path],
    *,
    given: Mapping[Path, bytes],
    excluded: Callable[[Path], bool],
) -> Entries:
    """Every file at or below the targets; `given` contents stand in for those on disk."""
    kept: list[tuple[Path, Source]] = []
    spoken: list[tuple[Path, Source]] = []
    covered: set[str] = set()
    suppressions: list[Suppression] = []
    unreadable: dict[str, Diagnostic] = {}
    lines = 0

    def no_listing(error: OSError) -> None:
        shown = Path(str(error.filename)).relative_to(root).as_posix()
        reason = f"the folder cannot be listed ({error.strerror})"
        fault = unreadable_file(shown, reason, "check its permissions, or exclude it")
        covered.add(shown)
        unreadable[shown] = fault.diagnostic

    for target in targets:
        for file in [target] if target in given else find_files(target, no_listing):
            shown = file.relative_to(root).as_posix()
            if shown in covered or excluded(file):
                continue
            covered.add(shown)
            try:
                if file in given:
                    source = decode_source(given[file], shown)
                else:
                    source = read_source(file, shown)
            except UnreadableFileError as error:
                unreadable[shown] = error.diagnostic
                continue
            lines += source.lines
            suppressions.extend(find_suppressions(source.text, shown))
            if can_matter(source.text):
                kept.append((file, source))
            elif may_hold_keys(source.text) or may_hold_contracts(source.text):
                spoken.append((file, source))
    return Entries(
        root=root,
        kept=tuple(kept),
        spoken=tuple(spoken),
        covered=frozenset(covered),
        lines=lines,
        suppressions=tuple(suppressions),
        unreadable=unreadable,
    )
