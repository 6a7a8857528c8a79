"""Which files there are, by one listing of each folder: asking for every path is far dearer."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(eq=False, slots=True)
class Folders:
    """What lies below a root, folder by folder, as it was when a folder was first asked for."""

    root: Path
    _names: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def holds_file(self, shown: str) -> bool:
        """Whether there is a file at a path below the root, written with slashes."""
        if not self._holds(shown):
            return False
        try:
            return (self.root / shown).is_file()
        except (OSError, ValueError):
            return False

    def _holds(self, shown: str) -> bool:
        folder, _, name = shown.rpartition("/")
        names = self._names.get(folder)
        if names is None:
            names = self._names[folder] = self._listed(folder)
        return name in names

    def _listed(self, folder: str) -> frozenset[str]:
        if folder and not self._holds(folder):
            return frozenset()
        try:
            return frozenset(os.listdir(self.root / folder))
        except (OSError, ValueError):
            return frozenset()
