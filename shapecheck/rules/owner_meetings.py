"""Where two owners' sizes meet: the pairs that SHP301 reports, one for each cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shapecheck.diagnostics.model import Certainty, Span
from shapecheck.rules.base import Verdicts
from shapecheck.rules.chain import handed_over, origin, passed_cells, place, stated
from shapecheck.static.facts import Facts, Meeting
from shapecheck.static.symbols import owner_conflict, owners_of
from shapecheck.static.values import Axis, Size, Tensor


@dataclass(frozen=True, slots=True)
class OwnerMeeting:
    """`odd` and `usual` are the two sizes, `odd` the one to look at first."""

    meeting: Meeting
    odd: Size
    usual: Size
    primary: Span
    certainty: Certainty


def owner_meetings(facts: Facts, verdicts: Verdicts) -> Iterator[OwnerMeeting]:
    """The conflicts of owners, one for each odd origin; causes reported are left out."""
    seen: set[Span] = set()
    known: set[tuple[str, Span | None, Span | None]] = set()
    by_span: dict[Span, list[Meeting]] = {}
    for meeting in facts.meetings.values():
        by_span.setdefault(meeting.span, []).append(meeting)
    for every_kind in by_span.values():
        meetings = [one for one in every_kind if _has_owner(one.left) and _has_owner(one.right)]
        conflicts = [
            (one, pair)
            for one in meetings
            for pair in _conflicting(one)
            if not _is_asked(facts, one, *pair)
        ]
        # What is live decides first; a placeholder is odd only where nothing live is.
        conflicts.sort(key=lambda one: one[0].left.has_no_rows or one[0].right.has_no_rows)
        for meeting, (left, right) in conflicts:
            odd, usual = _odd_first(meeting, left, right)
            primary = place(odd) or meeting.span
            # A field that is stated meets one tensor in several places: that is one cause.
            cause = (meeting.cell or meeting.where, origin(odd) or stated(odd), origin(usual))
            if primary in seen or cause in known or _explained(odd, usual, verdicts):
                continue
            seen.add(primary)
            if None not in cause:
                known.add(cause)
            every = len({id(one) for one, _ in conflicts}) == len(meetings)
            yield OwnerMeeting(
                meeting, odd, usual, primary, Certainty.MUST if every else Certainty.MAY
            )


def _has_owner(tensor: Tensor) -> bool:
    axes = tensor.dims if tensor.dims is not None else (tensor.last,)
    return any(axis and owners_of(axis.poly) - {""} for axis in axes)


def _explained(odd: Size, usual: Size, verdicts: Verdicts) -> bool:
    places = {origin(odd), origin(usual)} | handed_over(odd)
    cells = passed_cells(odd) | passed_cells(usual)
    return bool(places & verdicts.causes) or bool(cells & verdicts.cells)


def _is_asked(facts: Facts, meeting: Meeting, left: Size, right: Size) -> bool:
    """Whether the class or function asks itself if the two sizes are equal."""
    holder = meeting.where.rpartition(".")[0] or meeting.where
    kinds = {symbol.name for one in (left, right) for symbol in one.poly.symbols()}
    return any((meeting.span.path, holder, kind) in facts.compared for kind in kinds)


def _conflicting(meeting: Meeting) -> Iterator[tuple[Size, Size]]:
    for left, right in aligned_axes(meeting.left, meeting.right):
        if left is not None and right is not None and owner_conflict(left.poly, right.poly):
            yield left, right


def aligned_axes(left: Tensor, right: Tensor) -> Iterator[tuple[Axis, Axis]]:
    """The axes that broadcasting pairs up, from the last."""
    if left.dims is None or right.dims is None:
        yield left.axis(-1), right.axis(-1)
        return
    for offset in range(1, min(len(left.dims), len(right.dims)) + 1):
        yield left.dims[-offset], right.dims[-offset]


def _odd_first(meeting: Meeting, left: Size, right: Size) -> tuple[Size, Size]:
    """A placeholder of no rows is odd before a buffer, a buffer before what fills it."""
    if meeting.right.has_no_rows and not meeting.left.has_no_rows:
        return right, left
    return left, right
