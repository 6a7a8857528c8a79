"""Outcomes kept between runs as checksummed JSON, reused while every file they rest on is equal.

The analysis is of the whole program, so an outcome is kept as a whole: it holds as long as the
same files pass the prefilter and no file that was loaded, imports included, has another text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Severity, Span
from shapecheck.static.entries import Entries
from shapecheck.static.loader import UnreadableFileError, read_source
from shapecheck.static.outcome import Outcome

_KEPT = 64  # outcomes: one for each combination of targets and settings
_PACKAGE = Path(__file__).parents[1]
_Json = Mapping[str, Any]  # checked by the checksum: we wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCache:
    """A folder of outcomes; what cannot be read or written there costs a run, never an error."""

    folder: Path

    def get(self, key: str, entries: Entries) -> Outcome | None:
        """The outcome of this key if it still holds, else None."""
        try:
            checksum, _, body = (self.folder / f"{key}.json").read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != checksum:
                return None
            outcome = _decode(json.loads(body))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return outcome if _holds(outcome, entries) else None

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; readers see the whole of it or nothing, whoever else writes."""
        if not outcome.lasting:
            return
        body = json.dumps(_encode(outcome), separators=(",", ":")).encode()
        # Without a place to write, the next run takes as long as this one: nothing to report.
        with contextlib.suppress(OSError):
            self._prepare()
            handle, name = tempfile.mkstemp(prefix=".new-", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                os.replace(name, self.folder / f"{key}.json")
            except OSError:
                os.unlink(name)
                raise
            self._prune()

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")

    def _prune(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for file in files[:-_KEPT]:
            file.unlink(missing_ok=True)


def cache_key(root: Path, targets: Iterable[Path], settings: Iterable[str] = ()) -> str:
    """What tells outcomes apart before any file is compared: tool, Python, targets, settings."""
    parts = [*_tool(), sys.version, str(root), *sorted(map(str, targets)), "", *sorted(settings)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _tool() -> Iterator[str]:
    """The version, and the state of the package's files: a checkout changes without a version."""
    from shapecheck import __version__

    yield __version__
    for folder, folders, files in os.walk(_PACKAGE):
        folders.sort()
        for name in sorted(files):
            if not name.endswith(".pyc"):
                state = os.stat(os.path.join(folder, name))
                yield f"{name}:{state.st_size}:{state.st_mtime_ns}"


def _holds(outcome: Outcome, entries: Entries) -> bool:
    now = entries.digests
    if now != outcome.entries or any((entries.root / path).exists() for path in outcome.absent):
        return False
    return all(
        _digest(entries.root, path) == digest
        for path, digest in outcome.loaded.items()
        if path not in now
    )


def _digest(root: Path, path: str) -> str:
    try:
        return read_source(root / path, path).digest
    except UnreadableFileError:
        return ""


def _encode(outcome: Outcome) -> dict[str, object]:
    return {
        "findings": [asdict(one) for one in outcome.findings],
        "counts": dict(outcome.counts),
        "entries": dict(outcome.entries),
        "loaded": dict(outcome.loaded),
        "absent": sorted(outcome.absent),
    }


def _decode(data: _Json) -> Outcome:
    return Outcome(
        findings=tuple(_diagnostic(one) for one in data["findings"]),
        counts=cast("dict[str, int]", data["counts"]),
        entries=cast("dict[str, str]", data["entries"]),
        loaded=cast("dict[str, str]", data["loaded"]),
        absent=frozenset(cast("list[str]", data["absent"])),
    )


def _diagnostic(data: _Json) -> Diagnostic:
    return Diagnostic(
        code=data["code"],
        name=data["name"],
        message=data["message"],
        severity=Severity(data["severity"]),
        certainty=Certainty(data["certainty"]),
        primary=_span(data["primary"]),
        notes=tuple(
            Note(message=one["message"], label=one["label"], span=_span(one["span"]))
            for one in data["notes"]
        ),
        dims=DimPair(**data["dims"]) if data["dims"] else None,
        cell=data["cell"],
        fingerprint=data["fingerprint"],
    )


def _span(data: _Json | None) -> Span | None:
    return Span(**data) if data else None
