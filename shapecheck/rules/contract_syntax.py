"""SHP101 contract-syntax: a shape text or an annotation that cannot be checked as it is written.

## What it does

Reads the annotations of functions under `@contract` and of classes under `@carrier` or
`@graph_buffers` as the decorators do, without running them, and reports what those refuse: a token
of a shape text that is no name, no integer and no product or sum of them; a carrier that is no
dataclass; a class with tensors in it that is no carrier; a union that cannot be told apart.

## Why

jaxtyping reads `num_steps + 1` as three axes and `...` as any. The decorators refuse both, but only
when the module is imported; in a module that no test imports nobody hears of it.

## Instead

Write what the message proposes; one token is one axis (docs/contracts.md has every form). What
source does not tell, such as a class from outside the project, is left to the decorators.

## How to silence

`# shapecheck: ignore[SHP101] reason` on the line of the text; the decorator goes on
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

    @contract(phase="decode")
    def propose(
        self, states: Float[Tensor, "bs draft_hidden"]
    ) -> Int64[Tensor, "bs num_steps + 1"]:  # error: SHP101
        return self.pick(states)
"""
GOOD = BAD.replace("num_steps + 1", "num_steps+1").replace("  # error: SHP101", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each token or annotation that is refused."""
    return contract_text(RULE, facts)


RULE = Rule(
    code="SHP101",
    name="contract-syntax",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    stated=check,
)
