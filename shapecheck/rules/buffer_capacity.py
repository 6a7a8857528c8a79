"""SHP401 buffer-capacity: a buffer of exactly the live rows is sliced by a padded count.

## What it does

Reports `buffer[:n]` where the buffer holds what the largest live batch needs (requests times a
width) and `n` is a count that padding to a CUDA-graph bucket rounded up.

## Why

A slice beyond the end is no error in torch: the result is shorter than `n`, and the kernel that is
told `n` reads past it. "The padded size is below max_num_seqs times the width" is no rule; to
assume it is a known bug.

## Instead

Allocate the larger of the two: the live maximum and the largest bucket.

## How to silence

`# shapecheck: ignore[SHP401] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import chain, creation, last_cell
from shapecheck.static.counts import is_exact_capacity, is_padded_tokens
from shapecheck.static.facts import Facts

BAD = """
import torch

class Proposer:
    def __init__(self, max_num_seqs: int, num_speculative_tokens: int):
        self.positions = torch.zeros(max_num_seqs * (1 + num_speculative_tokens))  # error: SHP401

    def propose(self, num_input_tokens: int):
        return self.positions[:num_input_tokens]
"""
GOOD = """
import torch

class Proposer:
    def __init__(self, max_num_seqs: int, num_speculative_tokens: int, largest_bucket: int):
        rows = max(max_num_seqs * (1 + num_speculative_tokens), largest_bucket)
        self.positions = torch.zeros(rows)

    def propose(self, num_input_tokens: int):
        return self.positions[:num_input_tokens]
"""


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each buffer that a padded count slices, where it is allocated."""
    reported: set[str] = set()
    for cut in facts.slices.values():
        if not (is_exact_capacity(cut.rows.poly) and is_padded_tokens(cut.bound.poly)):
            continue
        cell = last_cell(cut.rows) or cut.where
        if cell in reported or cut.span in verdicts.causes:
            continue
        reported.add(cell)
        made = creation(cut.rows)
        yield Diagnostic(
            code=RULE.code,
            name=RULE.name,
            message=f"{cell} holds {cut.rows.poly} rows and is sliced by the padded "
            f"{cut.bound.poly}: the slice may be shorter ({cut.where})",
            certainty=Certainty.MAY,
            primary=made or cut.span,
            notes=(
                *chain(cut.rows),
                Note(label="sliced by", message=str(cut.bound.poly), span=cut.span),
                Note(
                    label="settle it",
                    message="allocate the larger of the live maximum and the largest bucket",
                ),
            ),
            dims=DimPair(expected=str(cut.bound.poly), found=str(cut.rows.poly)),
            cell=cell,
        )


RULE = Rule(
    code="SHP401",
    name="buffer-capacity",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
