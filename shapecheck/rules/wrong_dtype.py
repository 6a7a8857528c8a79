"""SHP207 wrong-dtype: a tensor has another element type than the contract says.

## What it does

Reports a creation whose element type is known and differs from the exact one that a contract or a
pack states for the field or parameter it is put in.

## Why

A kernel reads the bytes it is given: 64-bit indices where it expects 32-bit ones are every second
index and zeros between them, and nothing fails.

## Instead

Give the `dtype` where the tensor is made.

## How to silence

`# shapecheck: ignore[SHP207] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.handovers import DTYPE, report
from shapecheck.static.facts import Facts

BAD = """
from dataclasses import dataclass

import torch
from jaxtyping import Int32
from shapecheck import carrier
from torch import Tensor

@carrier
@dataclass
class Indices:
    rows: Int32[Tensor, "bs"]

def first(draft_tokens):
    return Indices(rows=torch.zeros((4,), dtype=torch.int64))  # error: SHP207
"""
GOOD = BAD.replace("int64", "int32").replace("  # error: SHP207", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each tensor of another exact element type."""
    yield from report(RULE.code, RULE.name, facts, verdicts, DTYPE)


RULE = Rule(
    code="SHP207",
    name="wrong-dtype",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    stated=check,
)
