"""SHP303 rows-meet: counts of two units meet, one row a request against one row a token.

## What it does

Follows what a first axis counts: requests, or requests times a width (the verify width N, the
draft depth S plus one, the branching topk). Reports

- operations whose operands must have equal rows and do not;
- a buffer with one row a request that is sliced by a count of tokens;
- offsets (`qo_indptr`, `cu_seqlens_q`) handed to a kernel beside rows (`q`) of another number;
- rows of one width that are divided by another;
- a conditional that lists modes and yields requests for those, tokens for every mode that the list
  forgets. A class named after a listed mode serves no other: its conditional is not reported.

## Why

With one token a request, or with `topk == 1`, the numbers agree; then they do not. Slices and
integer divisions stay silent.

## Instead

Take the rows from the tensor that arrives (`x.shape[0]`), and keep one unit in one name.

## How to silence

`# shapecheck: ignore[SHP303] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Span
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import chain, handed_over
from shapecheck.rules.handovers import ROWS, report
from shapecheck.rules.misdivided import misdivided
from shapecheck.rules.owner_meetings import aligned_axes
from shapecheck.static.counts import exceeds, rows_conflict, units_of
from shapecheck.static.facts import Arms, Facts, Meeting, Slice
from shapecheck.static.values import Size

BAD = """
import torch

def verify(bs: int, num_draft_tokens: int, spec_steps: int):
    draft = torch.zeros(bs * num_draft_tokens)
    predict = torch.zeros(bs * (spec_steps + 1))
    return draft + predict  # error: SHP303
"""
GOOD = """
import torch

def verify(bs: int, num_draft_tokens: int):
    draft = torch.zeros(bs * num_draft_tokens)
    predict = torch.zeros(draft.shape[0])
    return draft + predict
"""


def stated(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each count that a contract says is another."""
    yield from report(RULE.code, RULE.name, facts, verdicts, ROWS)


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each operation, slice or conditional where two units meet."""
    by_span: dict[Span, list[Meeting]] = {}
    for meeting in facts.meetings.values():
        by_span.setdefault(meeting.span, []).append(meeting)
    for span, meetings in by_span.items():
        # Rows that are unknown on the same way here may be the right ones.
        if any(meeting.vague for meeting in meetings):
            continue
        found = [_conflict(meeting) for meeting in meetings]
        pairs = [pair for pair in found if pair is not None]
        # Alternatives that agree somewhere may belong together: only a clash of all is certain.
        if span not in verdicts.causes and len(pairs) == len(meetings):
            verdicts.causes.add(span)
            yield _meeting(meetings[0], pairs[0])
    # As among alternatives that meet: rows that hold the bound may be those that belong to it.
    held = {(cut.span, cut.bound.poly) for cut in facts.slices.values() if _holds(cut)}
    for cut in facts.slices.values():
        if cut.span in verdicts.causes or _other_mode(cut.moded, cut.rows, cut.bound):
            continue
        if (cut.span, cut.bound.poly) in held:
            continue
        if exceeds(cut.bound.poly, cut.rows.poly):
            verdicts.causes.add(cut.span)
            yield _slice(cut)
    yield from misdivided(RULE, facts)
    reported: set[str] = set()
    for arms in facts.arms.values():
        holder = f"{arms.span.path}:{arms.where.rpartition('.')[0]}"
        if holder not in reported:
            reported.add(holder)
            yield _arms(arms)


def _conflict(meeting: Meeting) -> tuple[Size, Size] | None:
    """The two axes that count in two units, unless a test for equal shapes is around."""
    if meeting.tested is not None:
        return None
    for left, right in aligned_axes(meeting.left, meeting.right):
        if left is None or right is None or _other_mode(meeting.moded, left, right):
            continue
        if rows_conflict(left.poly, right.poly, single_branch=meeting.single_branch):
            return left, right
    return None


def _other_mode(moded: bool, *sizes: Size) -> bool:
    """A count handed to a branch for one mode may belong to another mode."""
    return moded and any(handed_over(size) for size in sizes)


def _holds(cut: Slice) -> bool:
    """Whether the rows are counted in the units of the bound."""
    bound = units_of(cut.bound.poly)
    return bound is not None and bound == units_of(cut.rows.poly)


def _meeting(meeting: Meeting, pair: tuple[Size, Size]) -> Diagnostic:
    left, right = pair
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"{left.poly} rows meet {right.poly} rows in {meeting.operator} ({meeting.where})",
        primary=meeting.span,
        notes=(
            *chain(left),
            *chain(right, "other "),
            Note(
                label="settle it",
                message="take the rows from the tensor that arrives, or guard with topk == 1 "
                "where the two widths are one",
            ),
        ),
        dims=DimPair(expected=str(left.poly), found=str(right.poly)),
        cell=meeting.cell or meeting.where,
    )


def _slice(cut: Slice) -> Diagnostic:
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"a buffer of {cut.rows.poly} rows is sliced to {cut.bound.poly}: "
        f"torch gives what there is, in silence ({cut.where})",
        primary=cut.span,
        notes=(
            *chain(cut.rows),
            *chain(cut.bound, "bound "),
            Note(label="settle it", message="allocate the buffer for every token of a request"),
        ),
        dims=DimPair(expected=str(cut.rows.poly), found=str(cut.bound.poly)),
        cell=cut.where,
    )


def _arms(arms: Arms) -> Diagnostic:
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"{arms.requests} counts requests where {arms.test}, "
        f"and is the tokens {arms.tokens} otherwise ({arms.where})",
        certainty=Certainty.MAY,
        primary=arms.span,
        notes=(
            Note(
                label="settle it",
                message="keep the number of requests itself, or make the width 1 in the other arm",
            ),
        ),
        dims=DimPair(expected=arms.requests, found=arms.tokens),
        cell=arms.where,
    )


RULE = Rule(
    code="SHP303",
    name="rows-meet",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
    stated=stated,
)
