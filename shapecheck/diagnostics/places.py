"""Where the files of a finding lie: the same finding, told from another folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from shapecheck.diagnostics.json import fingerprint
from shapecheck.diagnostics.model import Diagnostic, Span


def spans(finding: Diagnostic) -> Iterator[Span]:
    """Every place that a finding names: the line it leads with, then its chain."""
    if finding.primary is not None:
        yield finding.primary
    for note in finding.notes:
        if note.span is not None:
            yield note.span
        yield from note.others


def seen_from(finding: Diagnostic, *, root: Path, folder: Path) -> Diagnostic:
    """The finding with paths relative to `folder`; its fingerprint stays that of `root`.

    What is no file below `folder` keeps its path: stdin, a line of a pack, a release elsewhere.
    """
    return replace(
        finding,
        fingerprint=finding.fingerprint or fingerprint(finding),
        primary=finding.primary and _moved(finding.primary, root, folder),
        notes=tuple(
            replace(
                note,
                span=note.span and _moved(note.span, root, folder),
                others=tuple(_moved(span, root, folder) for span in note.others),
            )
            for note in finding.notes
        ),
    )


def _moved(span: Span, root: Path, folder: Path) -> Span:
    file = root / span.path
    if not file.is_relative_to(folder) or not file.is_file():
        return span
    return replace(span, path=file.relative_to(folder).as_posix())
