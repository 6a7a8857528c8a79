"""Joins: where the parts of a `cat` stand in it, so that a slice that is one of them is known."""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.index_operators import slice_of
from shapecheck.symbolic.reach import Reach
from shapecheck.symbolic.shape_env import expression, storage_key

Place = tuple[Expression, Expression, Reach | None]


@dataclass(frozen=True, slots=True)
class Join:
    """A memory that parts were joined in: along which axis, and where each of them is."""

    axis: int
    layout: tuple[list[Expression], list[Expression]]
    places: tuple[Place, ...]
    writes: int


@dataclass(slots=True)
class Joins:
    """The joins of one trace, by memory; one that was written to since says nothing."""

    _joins: dict[int, Join] = field(default_factory=dict[int, Join])
    # Held so that an address is not reused; the memory of fake tensors is empty.
    _alive: dict[int, object] = field(default_factory=dict[int, object])

    def remember(
        self,
        args: Sequence[Any],
        made: torch.Tensor,
        reach: Callable[[torch.Tensor], Reach | None],
        writes: int,
    ) -> None:
        """`made` is the cat of these arguments; its memory was written to so often by now."""
        parts, *given = args
        axis = (given[0] if given else 0) % max(made.dim(), 1)
        places: list[Place] = []
        start: Expression = sympy.Integer(0)
        for part in parts:
            if part.dim() != made.dim():
                return  # an empty one of another rank takes no place
            end = start + expression(part.shape[axis])
            places.append((start, end, reach(part)))
            start = end
        key, self._alive[key] = storage_key(made)
        self._joins[key] = Join(axis, _layout(made), tuple(places), writes)

    def part(self, args: Sequence[Any], writes: int) -> Reach | None:
        """What the slice of these arguments has when it is exactly one of the parts."""
        base = args[0]
        join, taken = self._joins.get(storage_key(base)[0]), slice_of(args)
        if join is None or taken is None or taken.axis != join.axis:
            return None
        if join.writes != writes or join.layout != _layout(base):
            return None
        for begins, ends, found in join.places:
            if (taken.first, taken.last) == (begins, ends):
                return found
        return None


def _layout(tensor: torch.Tensor) -> tuple[list[Expression], list[Expression]]:
    return [expression(size) for size in tensor.shape], [
        expression(stride) for stride in tensor.stride()
    ]
