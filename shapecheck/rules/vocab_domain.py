"""SHP305 vocab-domain: ids of one vocabulary index a table of the other.

## What it does

Token ids picked along the draft's vocabulary (`argmax`, `topk`, `multinomial` over its logits)
are the draft's. Indexing a table with one row for each token of the target's vocabulary with them,
or the other way round, is reported.

## Why

A draft with a reduced vocabulary numbers its tokens from 0 again: the lookup succeeds and gives
another token's row. Acceptance collapses, nothing fails.

## Instead

Map the ids first (`hot_token_id[ids]`, a `d2t` table), and keep mapped and raw ids in two names.

## How to silence

`# shapecheck: ignore[SHP305] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Diagnostic, DimPair, Note
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import chain, reasons
from shapecheck.static.facts import Facts
from shapecheck.static.symbols import owner_conflict

BAD = """
import torch

def embed(draft_model, batch, target_config, width: int):
    table = torch.zeros((target_config.vocab_size, width))
    ids = torch.argmax(draft_model.forward(batch).next_token_logits, dim=-1)
    return table[ids]  # error: SHP305
"""
GOOD = """
import torch

def embed(draft_model, batch, target_config, draft_config, width: int):
    table = torch.zeros((target_config.vocab_size, width))
    draft_to_target = torch.zeros(draft_config.vocab_size, dtype=torch.int64)
    ids = torch.argmax(draft_model.forward(batch).next_token_logits, dim=-1)
    return table[draft_to_target[ids]]
"""


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each lookup across vocabularies."""
    for lookup in facts.lookups.values():
        if not owner_conflict(lookup.ids.poly, lookup.rows.poly):
            continue
        yield Diagnostic(
            code=RULE.code,
            name=RULE.name,
            message=f"ids over {lookup.ids.poly} index a table over {lookup.rows.poly} "
            f"({lookup.where})",
            primary=lookup.span,
            notes=(
                *reasons(lookup.ids.poly, lookup.rows.poly),
                *chain(lookup.ids, "ids "),
                *chain(lookup.rows, "table "),
                Note(label="settle it", message="map the ids to the table's vocabulary first"),
            ),
            dims=DimPair(expected=str(lookup.rows.poly), found=str(lookup.ids.poly)),
            cell=lookup.where,
        )


RULE = Rule(
    code="SHP305",
    name="vocab-domain",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
