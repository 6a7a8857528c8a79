"""SHP301 owners-meet: sizes of two models meet in one operation.

## What it does

Reports an operation whose operands must have equal axes (`copy_`, `cat`, arithmetic, a matrix
product) where one axis comes from the target's config and the other from the draft's. A class that
asks whether the two sizes are equal (`if a.hidden_size != b.hidden_size`) is left alone: what it
does where they are not hangs on that test.

## Why

It works while the two models happen to have equal sizes and breaks for the first pair that does
not, often only in a rare state: an idle rank, a padded batch, a step in which everything finished.

## Instead

Size both from the model that produces the tensor.

## How to silence

`# shapecheck: ignore[SHP301] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Diagnostic, DimPair, Note
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import (
    chain,
    conditions,
    counterpart,
    creation,
    last_cell,
    meets,
    origin,
    reasons,
)
from shapecheck.rules.owner_meetings import OwnerMeeting, owner_meetings
from shapecheck.static.facts import Facts

BAD = """
import torch

def fill(draft_config, target_config, rows: int):
    buffer = torch.zeros((rows, draft_config.hidden_size))  # error: SHP301
    buffer.copy_(torch.ones((rows, target_config.hidden_size)))
"""
GOOD = BAD.replace("draft_config.h", "target_config.h").replace("  # error: SHP301", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each odd origin that meets the other owner's size."""
    for found in owner_meetings(facts, verdicts):
        read = origin(found.odd)
        places = (found.primary, read, creation(found.odd), found.meeting.span)
        verdicts.causes |= {place for place in places if place is not None}
        if found.meeting.tested is not None:
            verdicts.causes.add(found.meeting.tested.span)
        yield _finding(found)


def _message(found: OwnerMeeting) -> str:
    meeting, cell = found.meeting, last_cell(found.odd)
    usual = counterpart(found.odd, found.usual)
    if not meeting.fills:
        return f"{found.odd.poly} meets {usual} in {meeting.operator} ({meeting.where})"
    if _source_is_odd(found):
        return (
            f"{cell or 'the placeholder'} is sized {found.odd.poly} but fills {meeting.cell}, "
            f"which is sized {usual} ({meeting.where})"
        )
    silent = ", and a shape test skips the copy in silence" if meeting.tested else ""
    return (
        f"{cell or meeting.cell} is sized {found.odd.poly} but filled from {usual} "
        f"({meeting.where}){silent}"
    )


def _source_is_odd(found: OwnerMeeting) -> bool:
    return found.meeting.right.has_no_rows and not found.meeting.left.has_no_rows


def _finding(found: OwnerMeeting) -> Diagnostic:
    tested = found.meeting.tested
    notes = [
        *reasons(found.odd.poly, found.usual.poly),
        *conditions(found.meeting.guards),
        *chain(found.odd),
    ]
    if tested is not None:
        text = "this test; there is no else" if not tested.has_else else "this test"
        notes.append(Note(label="skipped by", message=text, span=tested.span))
    notes += [
        Note(
            label="meets",
            message=meets(found.odd, found.usual, _owner(found)),
            span=found.meeting.span,
        ),
        *chain(found.usual, "other "),
        Note(
            label="settle it",
            message=f"size it from the {_owner(found)}'s config like what it meets, "
            "or state in a contract or a pack whose it is",
        ),
    ]
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=_message(found),
        certainty=found.certainty,
        primary=found.primary,
        notes=tuple(notes),
        dims=DimPair(expected=str(counterpart(found.odd, found.usual)), found=str(found.odd.poly)),
        cell=last_cell(found.odd) or found.meeting.where,
    )


def _owner(found: OwnerMeeting) -> str:
    return next(iter(sorted(symbol.owner for symbol in found.usual.poly.symbols())))


RULE = Rule(
    code="SHP301",
    name="owners-meet",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
