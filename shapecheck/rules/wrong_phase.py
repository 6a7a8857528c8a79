"""SHP202 wrong-phase: a field gets the shape that it has in another phase.

## What it does

Where a contract gives a field one shape for each phase, reports a value that has exactly the shape
of another phase than the one that the method states.

## Why

One class that serves two phases carries two widths under one name. A placeholder made for the
wrong one joins with live rows until the two models differ in width.

## Instead

Build the carrier of the phase at hand, or give each phase a class of its own.

## How to silence

`# shapecheck: ignore[SHP202] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.handovers import OWNER, report
from shapecheck.static.facts import Facts

BAD = """
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float, Int64
from shapecheck import carrier, contract, phase
from torch import Tensor

@carrier
@dataclass
class DraftInput:
    hidden_states: (
        Annotated[Float[Tensor, "bs draft_hidden"], phase("decode")]
        | Annotated[Float[Tensor, "bs target_hidden"], phase("extend")]
    )
    last_ids: Int64[Tensor, "bs"]

class Worker:
    @contract(phase="extend")
    def idle(self, draft_config) -> DraftInput:
        width = draft_config.hidden_size  # error: SHP202
        ids = torch.empty((0,), dtype=torch.int64)
        return DraftInput(hidden_states=torch.empty((0, width)), last_ids=ids)
"""
GOOD = BAD.replace("draft_config", "target_config").replace("  # error: SHP202", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each value that has another phase's shape."""
    yield from report(RULE.code, RULE.name, facts, verdicts, OWNER, other_phase=True)


RULE = Rule(
    code="SHP202",
    name="wrong-phase",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    stated=check,
)
