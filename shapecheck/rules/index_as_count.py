"""SHP306 index-as-count: an index is used for its length, its values never.

## What it does

Reports `x[:len(index)]` in a function that is handed `index` and uses nothing of it but how many
there are.

## Why

`x[:len(keep)]` keeps the first rows, `x[keep]` the chosen ones. They agree as long as the rows
that go are the last; then requests get each other's state, and no shape is wrong.

## Instead

Index with it: `x[index]`. Where the rows were chosen before, use the values somewhere to show it,
or pass a count.

## How to silence

`# shapecheck: ignore[SHP306] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, Note
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.static.facts import Facts, UnusedIndex

BAD = """
class DraftState:
    def filter_batch(self, keep_indices):
        self.topk_index = self.topk_index[: len(keep_indices)]  # error: SHP306
"""
GOOD = """
class DraftState:
    def filter_batch(self, keep_indices):
        self.topk_index = self.topk_index[keep_indices]
"""


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each function and index, at the first slice."""
    first: dict[tuple[str, str, str], UnusedIndex] = {}
    more: dict[tuple[str, str, str], list[UnusedIndex]] = {}
    for fact in facts.unused_indices.values():
        key = (fact.span.path, fact.where, fact.index)
        if key in first:
            more.setdefault(key, []).append(fact)
        else:
            first[key] = fact
    for key, fact in first.items():
        notes = [
            Note(label="also", message=f"{one.target}[:len({one.index})]", span=one.span)
            for one in more.get(key, [])[:5]
        ]
        settle = f"write {fact.target}[{fact.index}], or pass the count if the rows were chosen"
        yield Diagnostic(
            code=RULE.code,
            name=RULE.name,
            message=f"{fact.target} keeps its first len({fact.index}) rows: the values of "
            f"{fact.index} are never used ({fact.where})",
            certainty=Certainty.MAY,
            primary=fact.span,
            notes=(*notes, Note(label="settle it", message=settle)),
            cell=f"{fact.where}({fact.index}=)",
        )


RULE = Rule(
    code="SHP306",
    name="index-as-count",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
