"""SHP901 internal-error: the analysis of a function crashed.

## What it does

Names the function whose analysis raised an exception, and where in the analyser. The other
functions are analysed as usual, and the run ends with exit status 2.

## Why

A crash that is passed over looks like clean code.

## Instead

Report it, with the lines of the function: it is a mistake of the tool, not of the code.

## How to silence

It cannot be silenced, deselected or put in a baseline. `--exclude` leaves the file out of a run.
"""

from __future__ import annotations

from shapecheck.rules.base import Rule

RULE = Rule(code="SHP901", name="internal-error", since="0.1", page=__doc__ or "")
