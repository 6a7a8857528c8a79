"""Limits on what values count: operators that make them fit another axis, or choose the largest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from shapecheck.symbolic.index_marks import IndexMarks
from shapecheck.symbolic.index_operators import (
    EMPTY,
    INTEGERS,
    SUMS,
    TAKES,
    UNLIMITED,
    is_put,
    upper_limit,
    value_put,
)
from shapecheck.symbolic.operands import tensors


def is_constant(marks: IndexMarks, value: object) -> bool:
    """Whether it is a number of the code, or a tensor of such numbers."""
    if isinstance(value, torch.Tensor):
        return marks.is_laid_out(value)
    return value is not None


def is_limit(
    marks: IndexMarks, packet: object, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether the operator leaves out values, or replaces them, because they are too large."""
    limit = upper_limit(packet, args, kwargs)
    if limit is not None:
        return is_constant(marks, limit) or is_constant(marks, args[0])
    value, operands = value_put(packet, args, kwargs), list(tensors((args, kwargs)))
    others = [one for one in operands if one is not value]
    # What says where to put values, or which to take.
    about = others[1:] if is_put(packet) else [one for one in others if one.dtype is torch.bool]
    where = frozenset[int]().union(*map(marks.sources, about))
    return any(marks.sources(one) & where for one in operands if marks.of(one) is not None)


def makes_limited(marks: IndexMarks, packet: object, args: Sequence[Any]) -> bool:
    """Whether what an operator makes may have its largest value from the code."""
    if packet in EMPTY:
        return False
    if packet in SUMS:
        return marks.is_flag(args[0])  # a count of a mask is limited by its axis
    if packet not in UNLIMITED:
        return True
    values = tensors(args[:1] if packet in TAKES else args)
    return any(is_limited(marks, one) for one in values)


def is_limited(marks: IndexMarks, value: torch.Tensor) -> bool:
    """Whether its largest value may be one that the code has set; constants limit nothing."""
    if marks.is_laid_out(value):
        return False
    return value.dtype not in INTEGERS or marks.is_limited(value)
