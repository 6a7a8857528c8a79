"""SHP104 pack-drift: a pack describes a name that the code does not have.

## What it does

Looks up every module, class, field, method and parameter that a pack names in the code of the
version at hand, and reports those that are missing.

## Why

A contract for a name that was renamed checks nothing, and nobody notices.

## Instead

Correct the name, or narrow `versions` in `pack.toml` and write a second pack for the new versions.

## How to silence

`--ignore SHP104`, or `--no-packs` for the packs that come with shapecheck.
"""

from __future__ import annotations

from shapecheck.rules.base import Rule

RULE = Rule(code="SHP104", name="pack-drift", since="0.1", page=__doc__ or "")
