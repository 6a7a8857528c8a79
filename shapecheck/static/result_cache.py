"""Outcomes kept between runs as checksummed JSON, reused while every file they rest on is equal.

The analysis is of the whole program, so an outcome is kept as a whole: it holds as long as the
same files pass the prefilter and every file that was loaded, imports included, means the same.
Where only comments or layout changed, the places of the findings move along.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Severity, Span
from shapecheck.static.entries import Entries
from shapecheck.static.layout import Place, moves
from shapecheck.static.loader import UnreadableFileError, read_source
from shapecheck.static.outcome import Outcome

_KEPT = 16  # outcomes, one for each combination of targets and settings, a few MB each
_PACKAGE = Path(__file__).parents[1]
_Json = Mapping[str, Any]  # checked by the checksum: we wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCache:
    """A folder of outcomes; what cannot be read or written there costs a run, never an error."""

    folder: Path

    def get(self, key: str, entries: Entries, is_root: Callable[[str], bool]) -> Outcome | None:
        """The outcome of this key if it still holds, else None; `is_root` as in `moves`."""
        try:
            checksum, _, body = self._file(key).read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != checksum:
                return None
            kept = _decode(json.loads(zlib.decompress(body)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, zlib.error):
            return None
        outcome = _brought_up(kept, entries, is_root)
        if outcome is not None and outcome is not kept:
            self.put(key, outcome)
        return outcome

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; readers see the whole of it or nothing, whoever else writes."""
        if not outcome.lasting:
            return
        body = zlib.compress(json.dumps(_encode(outcome), separators=(",", ":")).encode(), 1)
        # Without a place to write, the next run takes as long as this one: nothing to report.
        with contextlib.suppress(OSError):
            self._prepare()
            handle, name = tempfile.mkstemp(prefix=".new-", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                os.replace(name, self._file(key))
            except OSError:
                os.unlink(name)
                raise
            self._prune()

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json.z"

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")

    def _prune(self) -> None:
        files = sorted(self.folder.glob("*.json.z"), key=lambda file: file.stat().st_mtime)
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


def _brought_up(
    outcome: Outcome, entries: Entries, is_root: Callable[[str], bool]
) -> Outcome | None:
    """The outcome for the files as they are now, or None when it has to be found out anew."""
    root = entries.root
    if entries.states != outcome.entries or any((root / path).exists() for path in outcome.absent):
        return None
    now = {source.path: source.text for _, source in entries.kept}
    loaded: dict[str, str] = {}
    moved: dict[str, Mapping[Place, Place]] = {}
    for path, old in outcome.loaded.items():
        text = now[path] if path in now else _text(root, path)
        if text is None:
            return None
        if text != old:
            places = moves(old, text, is_root)
            if places is None:
                return None
            moved[path] = places
        loaded[path] = text
    if not moved:
        return outcome
    try:
        findings = tuple(_carried(one, moved) for one in outcome.findings)
    except KeyError:  # a place that is not a node's, such as the line of a syntax error
        return None
    return replace(outcome, findings=findings, loaded=loaded)


def _text(root: Path, path: str) -> str | None:
    try:
        return read_source(root / path, path).text
    except UnreadableFileError:
        return None


def _carried(finding: Diagnostic, moved: Mapping[str, Mapping[Place, Place]]) -> Diagnostic:
    def carry(span: Span) -> Span:
        if span.path not in moved:
            return span
        line, column = moved[span.path][span.line, span.column]
        return Span(path=span.path, line=line, column=column)

    return replace(
        finding,
        primary=finding.primary and carry(finding.primary),
        notes=tuple(
            replace(
                note,
                span=note.span and carry(note.span),
                others=tuple(carry(span) for span in note.others),
            )
            for note in finding.notes
        ),
    )


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
            Note(
                message=one["message"],
                label=one["label"],
                span=_span(one["span"]),
                others=tuple(Span(**span) for span in one["others"]),
            )
            for one in data["notes"]
        ),
        dims=DimPair(**data["dims"]) if data["dims"] else None,
        cell=data["cell"],
        fingerprint=data["fingerprint"],
    )


def _span(data: _Json | None) -> Span | None:
    return Span(**data) if data else None
