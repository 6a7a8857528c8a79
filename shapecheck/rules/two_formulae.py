"""SHP403 two-formulae: capture and replay of a graph compute one quantity differently.

## What it does

In a class with a capture and a replay side, compares what both give the same name: a count of
`bs * num_draft_tokens` rows at capture is not one of `bs * (num_steps + 1)` at replay. Compares as
well the keys under which graphs are kept with those by which they are looked up: a field that is a
count of tokens on one side, and that count divided by a width on the other.

## Why

A graph replays the shapes it was captured with. Where the two formulae agree for one setting only,
the replay reads rows that nobody wrote; where keys differ, no graph is ever found and every step
runs without one, in silence.

## Instead

Compute the quantity in one function that both sides call.

## How to silence

`# shapecheck: ignore[SHP403] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import chain
from shapecheck.static.counts import rows_conflict
from shapecheck.static.facts import Facts, Formula, KeyFormulae
from shapecheck.static.values import Size

BAD = """
import torch

class DraftGraphs:
    def __init__(self, max_bs: int, num_draft_tokens: int, spec_steps: int, draft_config):
        self.num_draft_tokens = num_draft_tokens
        self.spec_steps = spec_steps
        self.states = torch.zeros(max_bs * num_draft_tokens, draft_config.hidden_size)

    def capture(self, sizes):
        for bs in sizes:
            num_rows = bs * self.num_draft_tokens
            self.run(self.states[:num_rows])

    def replay(self, bs: int):
        num_rows = bs * (self.spec_steps + 1)  # error: SHP403
        return self.run(self.states[:num_rows])
"""
GOOD = BAD.replace("(self.spec_steps + 1)  # error: SHP403", "self.num_draft_tokens")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each name and for each field of a key."""
    for (_, name), formulae in facts.formulae.items():
        captured = [one for one in formulae.values() if one.side == "capture"]
        replayed = [one for one in formulae.values() if one.side == "replay"]
        if captured and replayed and _all_conflict(captured, replayed):
            yield _name(name, captured[0], replayed[0])
    for one in facts.keys.values():
        yield _key(one)


def _all_conflict(captured: Iterable[Formula], replayed: Iterable[Formula]) -> bool:
    """Whether no formula of one side may be a formula of the other."""
    return all(
        one.size is not None
        and other.size is not None
        and rows_conflict(
            one.size.poly,
            other.size.poly,
            single_branch=one.single_branch or other.single_branch,
        )
        for one in captured
        for other in replayed
    )


def _name(name: str, captured: Formula, replayed: Formula) -> Diagnostic:
    wanted, found = _size(captured), _size(replayed)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"{name} is {found.poly} at replay ({replayed.where}) and {wanted.poly} at "
        f"capture ({captured.where})",
        primary=replayed.span,
        notes=(
            *chain(found),
            Note(label="captured", message=str(wanted.poly), span=captured.span),
            *chain(wanted, "other "),
            _SETTLE,
        ),
        dims=DimPair(expected=str(wanted.poly), found=str(found.poly)),
        cell=replayed.where,
    )


def _size(formula: Formula) -> Size:
    assert formula.size is not None, "only known sizes conflict"
    return formula.size


def _key(one: KeyFormulae) -> Diagnostic:
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"{one.field} of the keys in {one.container} is {one.whole} on one side and "
        f"{one.divided} on the other: tokens against requests, no key is found ({one.where})",
        certainty=Certainty.MAY,
        primary=one.span,
        notes=(Note(label="looked up", message="by this", span=one.other), _SETTLE),
        cell=one.container,
    )


_SETTLE = Note(label="settle it", message="compute it in one function that both sides call")

RULE = Rule(
    code="SHP403",
    name="two-formulae",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
