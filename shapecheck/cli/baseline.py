"""The baseline: findings that are known and accepted for now, as a file to commit."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from shapecheck.diagnostics.json import fingerprint
from shapecheck.diagnostics.model import Diagnostic
from shapecheck.errors import ShapecheckError

VERSION = 1
_NEVER_KNOWN = ("SHP901", "SHP903")  # what was not analysed is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One entry: a fingerprint, how often it may occur, and what it was for the reader."""

    fingerprint: str
    count: int
    code: str
    path: str
    cell: str

    def __str__(self) -> str:
        return f"{self.code} {self.path}{f' {self.cell}' if self.cell else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The entries of one file."""

    entries: tuple[Known, ...]

    def split(self, findings: Sequence[Diagnostic]) -> tuple[list[Diagnostic], Counter[str]]:
        """The findings that are new, and how often each entry was not seen."""
        left = Counter({one.fingerprint: one.count for one in self.entries})
        new: list[Diagnostic] = []
        for finding in findings:
            mark = _mark(finding)
            if finding.code not in _NEVER_KNOWN and left[mark] > 0:
                left[mark] -= 1
            else:
                new.append(finding)
        return new, +left

    def stale(
        self, left: Mapping[str, int], codes: frozenset[str], roots: Mapping[Path, frozenset[str]]
    ) -> list[Known]:
        """The entries that were not seen although this run looked: at the code and at the file.

        `roots` are the paths that were linted below each import root.
        """
        linted = frozenset[str]().union(*roots.values())
        return [
            one
            for one in self.entries
            if left.get(one.fingerprint, 0)
            and one.code in codes
            and (one.path in linted or not any((root / one.path).exists() for root in roots))
        ]


def read_baseline(file: Path) -> Baseline:
    """The entries of a baseline file; ShapecheckError when it is none."""
    remedy = f"write a new one with --write-baseline {file}"
    try:
        document: object = json.loads(file.read_bytes())
    except OSError as error:
        raise ShapecheckError(
            f"the baseline {file} cannot be read ({error.strerror}); {remedy}"
        ) from None
    except (ValueError, RecursionError):
        raise ShapecheckError(f"the baseline {file} is not JSON; {remedy}") from None
    if not isinstance(document, dict):
        raise ShapecheckError(f"the baseline {file} is no JSON object; {remedy}")
    content = cast("dict[str, object]", document)
    if content.get("version") != VERSION:
        raise ShapecheckError(
            f"the baseline {file} has version {content.get('version')!r}, this shapecheck reads "
            f"{VERSION}; {remedy}"
        )
    entries = content.get("findings")
    if not isinstance(entries, list):
        raise ShapecheckError(f"the baseline {file} has no list of findings; {remedy}")
    known = [_known(entry) for entry in cast("list[object]", entries)]
    if None in known:
        raise ShapecheckError(
            f"the baseline {file} has an entry without fingerprint, count or code; {remedy}"
        )
    return Baseline(entries=tuple(one for one in known if one is not None))


def _known(entry: object) -> Known | None:
    if not isinstance(entry, dict):
        return None
    fields = cast("dict[str, object]", entry)
    mark, count = fields.get("fingerprint"), fields.get("count")
    texts = [fields.get(name) for name in ("code", "path", "cell")]
    if not isinstance(mark, str) or not isinstance(count, int) or isinstance(count, bool):
        return None
    if count < 1 or not all(isinstance(text, str) for text in texts):
        return None
    code, path, cell = cast("list[str]", texts)
    return Known(fingerprint=mark, count=count, code=code, path=path, cell=cell)


def write_baseline(file: Path, findings: Iterable[Diagnostic]) -> int:
    """Make these findings the known ones, and say how many they are."""
    known = [one for one in findings if one.code not in _NEVER_KNOWN]
    counts = Counter(_mark(one) for one in known)
    first: dict[str, Diagnostic] = {}
    for one in known:
        first.setdefault(_mark(one), one)
    entries = [
        {
            "code": one.code,
            "path": one.primary.path if one.primary else "",
            "cell": one.cell,
            "fingerprint": mark,
            "count": counts[mark],
        }
        for mark, one in first.items()
    ]
    entries.sort(key=lambda entry: [str(value) for value in entry.values()])
    text = json.dumps({"version": VERSION, "findings": entries}, indent=2, ensure_ascii=False)
    try:
        handle, name = tempfile.mkstemp(prefix=".baseline-", dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as sink:
            sink.write(text + "\n")
        os.chmod(name, 0o644)
        os.replace(name, file)
    except OSError as error:
        raise ShapecheckError(
            f"the baseline {file} cannot be written ({error.strerror}); name a file in a folder "
            "that exists"
        ) from None
    return len(known)


def _mark(finding: Diagnostic) -> str:
    return finding.fingerprint or fingerprint(finding)
