"""SHP201 wrong-owner: a size of one model stands where the other model's belongs.

## What it does

Reports a size of one model that is put where a contract or a pack says the other's, and an empty
placeholder that stands in for a live tensor and is sized from the other model's config: both reach
one field of one class, one with no rows, the other with the model's output.

## Why

A placeholder has no rows, so nothing fails where it is made. The next `torch.cat` or buffer copy
with a live batch fails, or is skipped.

## Instead

Size the placeholder from the model whose output the field carries in this phase.

## How to silence

`# shapecheck: ignore[SHP201] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import (
    chain,
    counterpart,
    handed_over,
    origin,
    origin_text,
    passed_cells,
    place,
    reasons,
)
from shapecheck.rules.handovers import OWNER, report
from shapecheck.static.facts import Facts, Split
from shapecheck.static.values import Size

BAD = """
from dataclasses import dataclass

import torch

@dataclass
class Carrier:
    hidden_states: torch.Tensor

class Worker:
    def step(self, batch, target_model, draft_config):
        batch.carrier = Carrier(target_model.forward(batch).hidden_states)
        if batch.finished:
            batch.carrier = Carrier(torch.empty((0, draft_config.hidden_size)))  # error: SHP201
        return batch.carrier.hidden_states
"""
GOOD = BAD.replace("draft_config", "target_config").replace("  # error: SHP201", "")


def stated(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each size that a contract gives to the other model."""
    yield from report(RULE.code, RULE.name, facts, verdicts, OWNER)


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each placeholder of the other owner that no other rule explained."""
    explained = frozenset(verdicts.causes)
    # A multiple of a size is the special case: the plain one is reported first.
    for split in sorted(facts.splits, key=lambda one: len(str(one.left.poly + one.right.poly))):
        if split.empty[0] == split.empty[1]:
            continue
        odd, live = (split.left, split.right) if split.empty[0] else (split.right, split.left)
        read = origin(odd)
        handed = handed_over(odd)
        if read is None or read in verdicts.causes or handed & explained:
            continue
        if passed_cells(odd) & verdicts.cells and read not in verdicts.arms:
            continue
        verdicts.causes |= handed | {read}
        yield _finding(split, odd, live)


def _finding(split: Split, odd: Size, live: Size) -> Diagnostic:
    expected = counterpart(odd, live)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"placeholder of {split.field} is sized {odd.poly}, the live one is {expected}",
        certainty=Certainty.MUST,
        primary=place(odd),
        notes=(
            *reasons(odd.poly, live.poly),
            *chain(odd),
            Note(
                label="meets",
                message=f"{split.field}, which is {expected} when it is live",
                span=split.span,
            ),
            *chain(live, "live "),
            Note(
                label="settle it",
                message=f"size it as the live one is ({origin_text(live)}), "
                "or state in a contract or a pack whose it is",
            ),
        ),
        dims=DimPair(expected=str(expected), found=str(odd.poly)),
        cell=split.field,
    )


RULE = Rule(
    code="SHP201",
    name="wrong-owner",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
    stated=stated,
)
