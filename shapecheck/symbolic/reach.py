"""Which values an integer tensor is known to hold, as sizes: what an index reaches.

A `Witness` says of one value that some element has it. Operators pass a witness on where the value
is still there for sure; nothing is claimed of the other elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shapecheck.symbolic.expressions import Expression

_MOST = 6
Function = Callable[[Expression], Expression]
Arithmetic = Callable[[Expression, Expression], Expression]


class Witness(NamedTuple):
    """A value that some element has, as long as all of `present` are more than 0."""

    value: Expression
    present: frozenset[Expression] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What is known of the values of one tensor.

    `free`: any one element may have any of the values, whatever its position and the others.
    `sparse`: all elements but one may be 0.
    """

    witnesses: tuple[Witness, ...]
    free: bool = False
    sparse: bool = False

    def within(self, sizes: Iterable[Expression]) -> Reach | None:
        """The same of a tensor of these sizes; None when it has no elements at all."""
        needed = frozenset(size for size in sizes if not (size.is_number and size > 0))
        if any(size == 0 for size in needed):
            return None
        made = (one._replace(present=one.present | needed) for one in self.witnesses)
        return replace(self, witnesses=tuple(made))

    def mapped(self, function: Function) -> Reach:
        """The values after a function of each."""
        made = (one._replace(value=function(one.value)) for one in self.witnesses)
        return replace(self, witnesses=tuple(dict.fromkeys(made)), sparse=False)


def constant(value: Expression) -> Reach:
    """Every element has this value."""
    return Reach(witnesses=(Witness(value),), free=True, sparse=value == 0)


def joined(parts: Sequence[Reach]) -> Reach | None:
    """Everything that any of the parts has; None when nothing is known."""
    found = tuple(dict.fromkeys(one for part in parts for one in part.witnesses))
    if not found or len(found) > _MOST:
        return None
    return Reach(witnesses=found, free=all(part.free for part in parts))


def combined(left: Reach, right: Reach, arithmetic: Arithmetic, *, apart: bool) -> Reach | None:
    """What an elementwise operator of two independent tensors has.

    `apart`: no axis is long in both, so that every element of one meets every one of the other.
    None when it is not known which elements meet.
    """
    if not (apart or left.free or right.free):
        return None
    pairs = [
        Witness(arithmetic(one.value, other.value), one.present | other.present)
        for one in left.witnesses
        for other in right.witnesses
    ]
    kept = dict.fromkeys(pairs if len(pairs) <= _MOST else (pairs[0], pairs[-1]))
    return Reach(witnesses=tuple(kept), free=left.free and right.free)


def chosen(arms: Sequence[Reach]) -> Reach | None:
    """What a choice among tensors has, where the choice does not depend on their values."""
    found = joined(arms)
    zero = any(arm.free and arm.witnesses == (Witness(0),) for arm in arms)
    return None if found is None else replace(found, sparse=zero)
