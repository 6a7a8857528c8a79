"""Dims in which no two names have the same number, so that no wrong name fits by chance."""

from __future__ import annotations

from typing import NamedTuple

from shapecheck.dims.model import Dims, Size
from shapecheck.dims.vocabulary import lookup


class DistinctDims(NamedTuple):
    """The same pair twice: with a draft wider than its target, and narrower."""

    wider: Dims
    narrower: Dims


def distinct_dims() -> DistinctDims:
    """Dims whose free names are pairwise distinct primes, so that no wrong name fits by chance.

    What follows from a formula follows it (`extend_hidden = num_aux*target_hidden`,
    `recurrent_hidden = draft_hidden`, `accept_width = num_steps+1`), and what a model must be able
    to halve is twice a prime (heads per key/value head, head widths).
    """
    return DistinctDims(wider=_distinct(37, 53), narrower=_distinct(53, 37))


_FREE = {
    "topk": 2,
    "num_aux": 3,
    "num_steps": 5,
    "target_layers": 7,
    "num_draft_tokens": 11,
    "draft_layers": 13,
    "target_kv_heads": 17,
    "dp_ranks": 19,
    "draft_kv_heads": 23,
    "target_ffn": 41,
    "draft_ffn": 43,
    "req_rows": 59,
    "max_context": 127,
    "num_slots": 131,
    "draft_vocab": 199,
    "target_vocab": 211,
}
_DERIVED = {
    "accept_width": (6, "num_steps+1"),
    "target_heads": (34, "2*target_kv_heads"),
    "draft_heads": (46, "2*draft_kv_heads"),
    "target_head_dim": (58, "2*29"),
    "draft_head_dim": (62, "2*31"),
}


def _distinct(target_hidden: int, draft_hidden: int) -> Dims:
    numbers = {**_FREE, "target_hidden": target_hidden, "draft_hidden": draft_hidden}
    chosen = {name: (number, "distinct_dims") for name, number in numbers.items()}
    chosen |= _DERIVED
    chosen["extend_hidden"] = (3 * target_hidden, "num_aux*target_hidden")
    chosen["recurrent_hidden"] = (draft_hidden, "draft_hidden")
    sizes: dict[str, Size] = {}
    for name, (number, origin) in chosen.items():
        declared = lookup(name)
        assert declared is not None, name
        sizes[name] = Size(value=number, owner=declared.owner, origin=origin)
    return Dims(sizes=sizes, target_dtype="bfloat16", draft_dtype="float16")
