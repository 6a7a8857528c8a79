"""SHP203 idle-differs: an empty placeholder has another rank or dtype than the live carrier.

## What it does

Collects everything that the program stores in one field of one class. A placeholder (no rows)
whose number of axes is that of no live tensor stored there is reported, where the field is joined,
copied or read along another axis than the first; so is another literal dtype, where the field is
concatenated. A wrong width is SHP201. What an object's own constructor puts in its fields stands
in for nothing: it is there until the field is bound.

## Why

An idle rank or a step in which everything finished runs the placeholder through the same code:
`torch.cat` refuses another rank and promotes another dtype, and an int64 table where int32 is
expected is read with the wrong stride.

## Instead

Make the placeholder as the live one is made, with 0 rows.

## How to silence

`# shapecheck: ignore[SHP203] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Span
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.static.facts import Facts
from shapecheck.static.values import Tensor

BAD = """
from dataclasses import dataclass

import torch

@dataclass
class DraftState:
    topk_index: torch.Tensor

    def merge(self, other):
        self.topk_index = torch.cat([self.topk_index, other.topk_index])

def live(bs: int, topk: int):
    return DraftState(torch.zeros((bs, topk), dtype=torch.int64))

def idle():
    return DraftState(torch.empty((0,), dtype=torch.int64))  # error: SHP203
"""
GOOD = BAD.replace("(0,)", "(0, 1)").replace("  # error: SHP203", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each field that has a placeholder unlike every live tensor."""
    for cell, writes in sorted(facts.field_writes.items()):
        name = cell.rpartition(".")[2]
        live = [
            one.tensor
            for one in writes
            if one.tensor.dims is not None and not one.tensor.has_no_rows
        ]
        for write in writes:
            if not live or not write.literal or not write.tensor.has_no_rows or write.initial:
                continue
            joined = _place(facts.joined, (*write.names, name))
            ranked = _place(facts.ranked, (*write.names, name))
            difference = _difference(
                write.tensor, live, joined=joined is not None, ranked=ranked is not None
            )
            if difference is not None and write.span not in verdicts.causes:
                verdicts.causes.add(write.span)
                yield _finding(cell, write.span, joined, ranked, *difference)
                break


def _place(places: Mapping[str, Span], names: Iterable[str]) -> Span | None:
    """Where a field is used that way: under a class that has it, or under one not known."""
    return next((places[name] for name in names if name in places), None)


def _difference(
    idle: Tensor, live: list[Tensor], *, joined: bool, ranked: bool
) -> tuple[str, str] | None:
    ranks = {len(one.dims or ()) for one in live}
    mine = len(idle.dims or ())
    if ranked and len(ranks) == 1 and mine not in ranks:
        return f"{ranks.pop()} axes", f"{mine} ax{'is' if mine == 1 else 'es'}"
    types = {one.dtype.name if one.dtype else "" for one in live}
    own = idle.dtype.name if idle.dtype else ""
    if joined and own and len(types) == 1 and "" not in types and own not in types:
        return types.pop(), own
    return None


def _finding(
    cell: str, span: Span, joined: Span | None, used: Span | None, expected: str, found: str
) -> Diagnostic:
    notes = [Note(label="joined by", message="torch.cat", span=joined)] if joined else []
    if used is not None and not joined:
        notes.append(Note(label="used here", message="as one of so many axes", span=used))
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"placeholder of {cell} has {found}, the live tensors have {expected}",
        certainty=Certainty.MAY,
        primary=span,
        notes=(
            *notes,
            Note(label="settle it", message="make it as the live one is made, with 0 rows"),
        ),
        dims=DimPair(expected=expected, found=found),
        cell=cell,
    )


RULE = Rule(
    code="SHP203",
    name="idle-differs",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
