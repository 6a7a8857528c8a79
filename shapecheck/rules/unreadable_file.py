"""SHP903 unreadable-file: a file that could not be analysed.

## What it does

Names every file that was left out: broken syntax, null bytes, an unknown encoding, nesting too
deep for the parser, a size beyond the limit, a pipe or a broken link, a folder that cannot be
listed.

## Why

A file that is skipped in silence looks like a clean one.

## Instead

Repair the file, or exclude it from the run.

## How to silence

Exclude the path: a file that cannot be read holds no suppression.
"""

from __future__ import annotations

from shapecheck.diagnostics.model import Severity
from shapecheck.rules.base import Rule

RULE = Rule(
    code="SHP903",
    name="unreadable-file",
    since="0.1",
    page=__doc__ or "",
    severity=Severity.WARNING,
)
