"""SHP302 odd-one-out: one caller passes one model's size where the others pass the other's.

## What it does

Collects, over the whole program, which model's size every call hands to a parameter that sizes a
tensor. When callers disagree about the owner, the odd caller is reported.

## Why

A placeholder or a buffer made from the wrong config fits as long as the two models have equal
sizes, and breaks far away when they do not: in a `torch.cat` of the next step, or not at all when
a guard skips the copy.

## Which caller is odd

The one whose object stands in for a live one of the other owner (both reach the same place), or
else a single caller against two or more that put the result into the same field of an object that
others read. Callers that merely differ are not reported: two models may use one helper.

## Instead

Let the phase that produces the tensor choose the size, in one place that every caller uses.

## How to silence

`# shapecheck: ignore[SHP302] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Span
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import (
    chain,
    conditions,
    counterpart,
    origin,
    origin_text,
    passed_cells,
    reasons,
)
from shapecheck.static.facts import Facts, Pass, Split
from shapecheck.static.guards import Guard
from shapecheck.static.symbols import owner_conflict, owners_of
from shapecheck.static.values import Size, alternatives

BAD = """
import torch

class Carrier:
    def __init__(self, hidden):
        self.hidden = hidden

    @classmethod
    def idle(cls, width: int):
        return cls(torch.empty((0, width)))

def first(batch, target_config):
    batch.carrier = Carrier.idle(target_config.hidden_size)

def second(batch, target_config):
    batch.carrier = Carrier.idle(target_config.hidden_size)

def third(batch, draft_config):
    batch.carrier = Carrier.idle(draft_config.hidden_size)  # error: SHP302
"""
GOOD = BAD.replace("draft_config", "target_config").replace("  # error: SHP302", "")


@dataclass(frozen=True, slots=True)
class _Caller:
    """One call of the parameter: the owned sizes it passes, all of one owner."""

    fact: Pass
    owner: str
    size: Size
    others: tuple[Size, ...]
    guards: tuple[Guard, ...]
    complete: bool


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each odd caller of a parameter that sizes a stored tensor."""
    by_cell: dict[str, list[_Caller]] = {}
    for fact in facts.passes.values():
        caller = _caller(fact)
        if caller is not None:
            by_cell.setdefault(fact.cell, []).append(caller)
    for cell, callers in sorted(by_cell.items()):
        if cell not in facts.sized or not _conflict(callers):
            continue
        odd, rest = _odd(cell, callers, facts)
        for caller in odd:
            if origin(caller.size) in verdicts.causes:
                continue
            verdicts.cells.add(cell)
            verdicts.causes |= _origins((caller.size,))
            verdicts.arms |= _origins(caller.others)
            yield _finding(cell, caller, rest, facts)


def _origins(sizes: Iterable[Size]) -> set[Span]:
    return {place for size in sizes if (place := origin(size)) is not None}


def _caller(fact: Pass) -> _Caller | None:
    owned: list[tuple[Size, tuple[Guard, ...]]] = []
    complete = True
    for choice in alternatives(fact.value):
        if isinstance(choice.value, Size) and len(owners_of(choice.value.poly)) == 1:
            owned.append((choice.value, choice.guards))
        else:
            complete = False
    owners = {owner for size, _ in owned for owner in owners_of(size.poly)}
    if len(owners) != 1 or owners == {""}:
        return None
    # The plain size says most clearly whose it is; a multiple of it is the special case.
    owned.sort(key=lambda one: one[0].poly.as_symbol() is None)
    size, guards = owned[0]
    return _Caller(
        fact, owners.pop(), size, tuple(other for other, _ in owned[1:]), guards, complete
    )


def _conflict(callers: list[_Caller]) -> bool:
    first = callers[0]
    return any(owner_conflict(first.size.poly, other.size.poly) for other in callers[1:])


def _odd(cell: str, callers: list[_Caller], facts: Facts) -> tuple[list[_Caller], list[_Caller]]:
    stand_ins = [caller for caller in callers if _stands_in(cell, caller, facts.splits)]
    owners = {caller.owner for caller in stand_ins}
    if len(owners) == 1 and len({caller.owner for caller in callers}) == 2:
        return stand_ins, [one for one in callers if one.owner not in owners]
    groups: dict[str, list[_Caller]] = {}
    for caller in callers:
        groups.setdefault(caller.owner, []).append(caller)
    small, large = sorted(groups.values(), key=len)
    if len(small) == 1 and len(large) >= 2:
        goal = _destination(small[0], facts)
        if goal and any(goal == _destination(other, facts) for other in large):
            return small, large
    return [], []


def _destination(caller: _Caller, facts: Facts) -> str:
    """The field of a shared object that the result is put in; an object's own does not count."""
    target = facts.destinations.get(caller.fact.call, "")
    holder, _, name = target.rpartition(".")
    return "" if holder in ("self", "cls", "") else name


def _stands_in(cell: str, caller: _Caller, splits: Iterable[Split]) -> bool:
    """Whether what the caller made meets, in one field, a live tensor of the other owner."""
    for split in splits:
        for mine, other in ((split.left, split.right), (split.right, split.left)):
            if cell in passed_cells(other) or not owner_conflict(mine.poly, other.poly):
                continue
            if any(step.cell == cell and step.span == caller.fact.span for step in mine.trail):
                return True
    return False


def _finding(cell: str, caller: _Caller, rest: list[_Caller], facts: Facts) -> Diagnostic:
    found, expected = str(caller.size.poly), str(counterpart(caller.size, rest[0].size))
    place = origin(caller.size)
    argument = caller.fact.span
    primary = place if place is not None and place.path == argument.path else argument
    notes = [_others(rest), *reasons(caller.size.poly, rest[0].size.poly)]
    notes += conditions(caller.guards)
    notes += [
        Note(label="otherwise", message=f"passes {size.poly}", span=origin(size))
        for size in caller.others
    ]
    notes += chain(caller.size)
    notes.append(Note(label="passed to", message=cell, span=argument))
    notes += _meets(cell, caller, facts)
    notes.append(
        Note(
            label="settle it",
            message=f"size it as {origin_text(rest[0].size)} does, "
            "or state in a contract or a pack whose it is",
        )
    )
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"{found} passed to {cell}, other callers pass {expected}",
        certainty=Certainty.MUST if caller.complete else Certainty.MAY,
        primary=primary,
        notes=tuple(notes),
        dims=DimPair(expected=expected, found=found),
        cell=cell,
    )


def _others(rest: list[_Caller]) -> Note:
    places: dict[Span, str] = {}
    for caller in rest:
        places.setdefault(caller.fact.span, origin_text(caller.size))
    spans = sorted(places, key=str)
    shown = [f"{span} {places[span]}" for span in spans]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return Note(label="other callers", message=" · ".join(shown[:3]) + more, others=tuple(spans))


def _meets(cell: str, caller: _Caller, facts: Facts) -> list[Note]:
    for split in facts.splits:
        for mine, other in ((split.left, split.right), (split.right, split.left)):
            if cell in passed_cells(other):
                continue
            if any(step.cell == cell and step.span == caller.fact.span for step in mine.trail):
                text = (
                    f"{split.field}, which is {other.poly} when it is live ({origin_text(other)})"
                )
                notes = [Note(label="meets", message=text, span=split.span)]
                joined = facts.joined.get(split.field)
                if joined is not None:
                    notes.append(Note(label="joined by", message="torch.cat", span=joined))
                return notes
    return []


RULE = Rule(
    code="SHP302",
    name="odd-one-out",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
