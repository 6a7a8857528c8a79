"""Which files there are, by one listing of each folder: asking for every path is far dearer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(eq=False, slots=True)
class Folders:
    """What lies below a root, folder by folder, as it was when a folder was first asked for."""

    root: Path
    _listings: dict[str, Mapping[str, bool]] = field(default_factory=dict[str, Mapping[str, bool]])

    def holds_file(self, shown: str) -> bool:
        """Whether there is a file at a path below the root, written with slashes."""
        folder, _, name = shown.rpartition("/")
        return self._listing(folder).get(name, False)

    def _listing(self, folder: str) -> Mapping[str, bool]:
        """The names in a folder, and whether each is a file."""
        known = self._listings.get(folder)
        if known is None:
            known = self._listings[folder] = self._listed(folder)
        return known

    def _listed(self, folder: str) -> Mapping[str, bool]:
        above, _, name = folder.rpartition("/")
        if folder and name not in self._listing(above):
            return {}
        try:
            with os.scandir(self.root / folder) as entries:
                return {one.name: _is_file(one) for one in entries}
        except (OSError, ValueError):
            return {}


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads round in a circle
        return False
