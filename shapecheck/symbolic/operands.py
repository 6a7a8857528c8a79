"""The tensors in whatever was passed to torch or came out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import torch


def tensors(value: object) -> Iterator[torch.Tensor]:
    """Every tensor in nested arguments or results, in order."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor))


def sizes(value: object) -> Iterator[torch.SymInt]:
    """Every symbolic size in nested arguments, those of a tensor's shape left out."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, torch.SymInt))


def leaves(value: object) -> Iterator[object]:
    """Everything in nested lists, tuples and dicts that is none of them."""
    if isinstance(value, (list, tuple)):
        for item in cast("Sequence[object]", value):
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in cast("Mapping[object, object]", value).values():
            yield from leaves(item)
    else:
        yield value
