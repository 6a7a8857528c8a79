"""SHP102 unknown-dim: an axis name that is not in the vocabulary.

## What it does

Looks up every name in the shape texts of functions under `@contract` and of classes under
`@carrier` or `@graph_buffers`: in the vocabulary that comes with shapecheck, and among the names
that the project adds with `shapecheck.declare("name", owner=...)`.

## Why

To jaxtyping a typo is a new dimension that binds to anything: `draft_hiden` is never equal to
`draft_hidden`, and never compared with it. The decorator refuses it, but only when it runs.

## Instead

Correct the spelling, or declare the name with its owner. Where the project declares names that are
no literals, or imports a module of its own that is not there, only near misses are reported.

## How to silence

`# shapecheck: ignore[SHP102] reason` on the line of the text; the decorator goes on
refusing it.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.contract_text import contract_text
from shapecheck.static.facts import Facts

BAD = """
from dataclasses import dataclass
from jaxtyping import Float
from torch import Tensor
from shapecheck import carrier, declare

declare("draft_rank", owner="draft")

@carrier
@dataclass
class DraftState:
    adapters: Float[Tensor, "draft_layers draft_rank"]
    hidden_states: Float[Tensor, "bs draft_hiden"]  # error: SHP102
"""
GOOD = BAD.replace("draft_hiden", "draft_hidden").replace("  # error: SHP102", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each name and text."""
    return contract_text(RULE, facts)


RULE = Rule(
    code="SHP102",
    name="unknown-dim",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    stated=check,
)
