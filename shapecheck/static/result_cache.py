"""Outcomes kept between runs, checksummed, and reused while every file they rest on is equal.

An outcome holds as long as the same files pass the prefilter and every file that was loaded,
imports included, means the same. Where only comments or layout changed, the places of the findings
move along. Where bodies changed, the analysis that is kept beside it is brought up to date.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Severity, Span
from shapecheck.static.analysis import Analysis
from shapecheck.static.cache_file import read_checked, write_checked
from shapecheck.static.codec import FACTS, CodecError, decode, encode
from shapecheck.static.entries import Entries
from shapecheck.static.folders import Folders
from shapecheck.static.layout import Place, moves
from shapecheck.static.loader import Source, UnreadableFileError, read_source
from shapecheck.static.outcome import Outcome
from shapecheck.static.prefilter import Weight, speaks
from shapecheck.static.states import FieldState
from shapecheck.static.texts import Packed, Texts
from shapecheck.static.units import Segment, Units

_KEPT = 16  # outcomes, one for each combination of targets and settings, a few MB each
_DIGEST = 32
_CLASSES = (Analysis, Units, Segment, FieldState, Diagnostic, Note, DimPair, Severity, Certainty)
_PACKAGE = Path(__file__).parents[1]
_Json = Mapping[str, Any]  # checked by the checksum: we wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An outcome of an earlier run; `texts` are those of its files."""

    outcome: Outcome
    texts: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCache:
    """A folder of outcomes; what cannot be read or written there costs a run, never an error."""

    folder: Path

    def get(self, key: str, entries: Entries, weigh: Callable[[str], Weight]) -> Outcome | None:
        """The outcome of this key if it still holds, else None; `weigh` as in `moves`."""
        kept = self.earlier(key)
        now = texts_now(kept.outcome, entries) if kept is not None else None
        if kept is None or now is None:
            return None
        return brought_up(kept.outcome, now, kept.texts.edited(now), weigh)

    def earlier(self, key: str) -> Kept | None:
        """The outcome that was kept last, whether it still holds or not."""
        head, _, body = (read_checked(self._file(key)) or b"").partition(b"\n")
        try:
            texts = Texts(cast("Mapping[str, Packed]", decode(body, ())))
            return Kept(outcome=_decode(json.loads(head), texts), texts=texts)
        except (CodecError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def analysis(self, key: str, kept: Kept) -> Analysis | None:
        """The analysis behind an outcome that was kept."""
        body = read_checked(self._units(key))
        if body is None or body[:_DIGEST] != kept.texts.digest:
            return None
        try:
            made = decode(body[_DIGEST:], (*FACTS, *_CLASSES))
        except CodecError:
            return None
        return replace(made, loaded=kept.texts) if isinstance(made, Analysis) else None

    def put(
        self,
        key: str,
        outcome: Outcome,
        analysis: Analysis | None = None,
        before: Kept | None = None,
    ) -> None:
        """Keep an outcome, and the analysis behind it if it is at hand.

        The texts that it shares with the one that was kept `before` are packed already.
        """
        if not outcome.lasting:
            return
        texts = Texts.of(outcome.loaded, before and before.texts)
        head = json.dumps(_encode(outcome), separators=(",", ":")).encode()
        write_checked(self._file(key), head + b"\n" + encode(texts.packed), packed=True)
        if analysis is not None:
            plain = replace(analysis, units=analysis.units.closed(), loaded={})
            write_checked(self._units(key), texts.digest + encode(plain))
        with contextlib.suppress(OSError):
            self._prune()

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json.z"

    def _units(self, key: str) -> Path:
        return self.folder / f"{key}.units.z"

    def _prune(self) -> None:
        files = sorted(self.folder.glob("*.json.z"), key=lambda file: file.stat().st_mtime)
        for file in files[:-_KEPT]:
            file.unlink(missing_ok=True)
            self._units(file.name.removesuffix(".json.z")).unlink(missing_ok=True)


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


def texts_now(outcome: Outcome, entries: Entries) -> dict[str, str] | None:
    """The texts of the files that took part, or None when other files would take part now."""
    root = entries.root
    if entries.states != outcome.entries or any(map(Folders(root).holds_file, outcome.absent)):
        return None
    given = {source.path: source.text for _, source in entries.read}
    now: dict[str, str] = {}
    for path in outcome.loaded:
        text = given[path] if path in given else _text(root, path)
        if text is None:
            return None
        now[path] = text
    return now


def brought_up(
    outcome: Outcome,
    now: Mapping[str, str],
    edited: Mapping[str, str],
    weigh: Callable[[str], Weight],
) -> Outcome | None:
    """The outcome for the texts `now`, or None when it has to be found out anew.

    `edited` are those that were others before. What is kept stays as it was: the analysis beside
    it is of the same texts.
    """
    moved: dict[str, Mapping[Place, Place]] = {}
    for path, old in edited.items():
        places = moves(old, now[path], weigh)
        if places is None or speaks(old) is not speaks(now[path]):
            return None
        moved[path] = places
    if not moved:
        return outcome
    try:
        findings = tuple(_carried(one, moved) for one in outcome.findings)
    except KeyError:  # a place that is not a node's, such as the line of a syntax error
        return None
    lines = sum(_lines(now[path]) - _lines(edited[path]) for path in moved)
    counts = {**outcome.counts, "lines_loaded": outcome.counts["lines_loaded"] + lines}
    return replace(outcome, findings=findings, counts=counts, loaded=now)


def _lines(text: str) -> int:
    return Source(path="", text=text).lines


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
        "absent": sorted(outcome.absent),
    }


def _decode(data: _Json, texts: Texts) -> Outcome:
    return Outcome(
        findings=tuple(_diagnostic(one) for one in data["findings"]),
        counts=cast("dict[str, int]", data["counts"]),
        entries=cast("dict[str, str]", data["entries"]),
        loaded=texts,
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
