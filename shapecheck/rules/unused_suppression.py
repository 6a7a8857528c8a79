"""SHP902 unused-suppression: a comment silences nothing, or does not say what and why.

## What it does

Reports a `# shapecheck: ignore[...]` whose code is not reported on its line (or on the next line,
when the comment stands alone), one without codes, and one without a reason.

## Why

A suppression that outlives its finding hides the next one.

## Instead

Delete it, or name the code and say why: `# shapecheck: ignore[SHP301] both are 4096 by assertion`.

## How to silence

It cannot be silenced in the source; `--ignore SHP902` leaves it out of a run.
"""

from __future__ import annotations

from shapecheck.rules.base import Rule

RULE = Rule(
    code="SHP902",
    name="unused-suppression",
    since="0.1",
    page=__doc__ or "",
)
