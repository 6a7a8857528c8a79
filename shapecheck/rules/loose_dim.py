"""SHP103 loose-dim: a contract or a name in it that checks nothing.

## What it does

Counts how often each per-call name (`bs`, `tokens`) occurs in a contract: arguments and result
together, carriers opened, an item of a list twice. Reports a name that occurs once, and a contract
without any tensor. In a function that has neither `self` nor a parameter of type `Dims` the names
of Dims bind per call as well.

## Why

A name that occurs once binds to whatever arrives. The contract reads as if it held something.

## Instead

Use the name in a second tensor of the contract, or write the size that is meant. A contract with
an annotation that source does not tell, such as a class from outside the project, is left to the
decorator.

## How to silence

`# shapecheck: ignore[SHP103] reason` on the line of the text; the decorator goes on
refusing it.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.contract_text import contract_text
from shapecheck.static.facts import Facts

BAD = """
from jaxtyping import Float, Int64
from torch import Tensor
from shapecheck import Dims, contract

class Drafter:
    def __init__(self, dims: Dims):
        self.dims = dims

    @contract(phase="draft_extend")
    def extend(
        self,
        ids: Int64[Tensor, "tokens"],  # error: SHP103
        states: Float[Tensor, "bs draft_hidden"],
    ) -> Float[Tensor, "bs draft_vocab"]:
        return self.head(states)
"""
GOOD = BAD.replace('"tokens"', '"bs"').replace("  # error: SHP103", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each loose name and contract."""
    return contract_text(RULE, facts)


RULE = Rule(
    code="SHP103",
    name="loose-dim",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    stated=check,
)
