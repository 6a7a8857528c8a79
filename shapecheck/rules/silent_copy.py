"""SHP402 silent-copy-guard: a copy that a test for equal shapes skips without a word.

## What it does

Reports `if a.shape == b.shape: a.copy_(b)` with no `else`. Where the buffer's size is known to be
the other model's, SHP201 or SHP301 reports the origin of that size instead.

## Why

When the shapes differ the buffer keeps what the previous step left there: no error, wrong tokens,
a low acceptance rate that nobody connects with a width.

## Instead

Raise when the shapes differ, or allocate the buffer from the size of what fills it.

## How to silence

`# shapecheck: ignore[SHP402] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, Note
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.static.facts import Facts

BAD = """
def replay(buffer, fresh):
    if fresh.shape[1] == buffer.shape[1]:  # error: SHP402
        buffer.copy_(fresh)
    return buffer
"""
GOOD = """
def replay(buffer, fresh):
    if fresh.shape[1] != buffer.shape[1]:
        raise ValueError("width")
    buffer.copy_(fresh)
    return buffer
"""


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each guard; where the buffer's size was reported, that has it."""
    for span, copy in facts.guarded_copies.items():
        if span in verdicts.causes or copy.test.has_else or copy.cell in verdicts.fields:
            continue
        yield Diagnostic(
            code=RULE.code,
            name=RULE.name,
            message=f"{copy.into} keeps its old contents in silence when the shapes differ",
            certainty=Certainty.MAY,
            primary=span,
            notes=(
                Note(
                    label="settle it",
                    message="raise when the shapes differ, or size the buffer from its source",
                ),
            ),
            cell=copy.into,
        )


RULE = Rule(
    code="SHP402",
    name="silent-copy-guard",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
