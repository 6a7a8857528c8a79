"""Reshapes that tear axes apart: `[bs, heads, rows]` seen as `[bs*rows, heads]`.

A view takes values in the order in which they lie. It can merge axes that lie side by side, and
split one; where the new axes are the old ones in another order, every value lands in another's
place, and no size tells. The axes had to be permuted first.
"""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import sympy
import torch

from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.shape_env import Operator, sizes_of

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten
_RESHAPES = frozenset[object]({_aten.view, _aten._unsafe_view, _aten._reshape_alias})
Axes = tuple[Expression, ...]


def check_reshape(
    func: Operator, args: Sequence[object], result: object, recorder: Recorder
) -> None:
    """Report a reshape whose axes are those that were there, in another order."""
    given, operation = args[0] if args else None, recorder.operation
    if func.overloadpacket not in _RESHAPES or operation is None:
        return
    if not isinstance(given, torch.Tensor) or not isinstance(result, torch.Tensor):
        return
    if given.dtype is not result.dtype or given.dim() < 2 or result.dim() < 2:
        return
    for before, after in _pieces(_long(given), _long(result)):
        if len(before) > 1 and len(after) > 1 and _is_permuted(before, after):
            names = {recorder.judge.names[one] for size in before for one in size.free_symbols}
            text, origins = recorder.describe_operands(operation, frozenset(names))
            recorder.add(
                Meeting(
                    code="SHP303",
                    text=f"a reshape to {recorder.shape(result)} takes values across the axes",
                    names=frozenset(names),
                    site=operation.site,
                    operation=text,
                    origins=origins,
                    may=True,
                    remedy="permute the axes into this order first",
                )
            )
            return


def _long(tensor: torch.Tensor) -> list[Expression]:
    """The sizes, without axes of one place."""
    return [size for size in sizes_of(tensor) if size != 1]


def _pieces(before: list[Expression], after: list[Expression]) -> Iterator[tuple[Axes, Axes]]:
    """The shortest runs of axes on both sides that hold as many values, in order."""
    ends = [_products(axes) for axes in (before, after)]
    starts = [0, 0]
    for end, product in enumerate(ends[0], start=1):
        if product in ends[1][starts[1] :]:
            other = ends[1].index(product, starts[1]) + 1
            yield tuple(before[starts[0] : end]), tuple(after[starts[1] : other])
            starts = [end, other]


def _products(axes: Sequence[Expression]) -> list[Expression]:
    found, product = list[Expression](), sympy.Integer(1)
    for size in axes:
        product = sympy.expand(product * size)
        found.append(product)
    return found


def _is_permuted(before: Axes, after: Axes) -> bool:
    """Whether every new axis is a product of some of the old ones, each taken once.

    One name beside plain numbers is too little to tell: a number may be the half of a width.
    """
    if sum(bool(size.free_symbols) for size in before) < 2:
        return False
    return _matches(before, after)


def _matches(before: Axes, after: Axes) -> bool:
    """Whether the first new axis is a product of old ones, and the others of those left."""
    if not after:
        return not before
    for count in range(1, len(before) + 1):
        for chosen in combinations(range(len(before)), count):
            if sympy.expand(sympy.prod([before[one] for one in chosen]) - after[0]) == 0:
                rest = tuple(size for one, size in enumerate(before) if one not in chosen)
                if _matches(rest, after[1:]):
                    return True
    return False
