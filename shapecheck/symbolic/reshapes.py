"""Reshapes that tear axes apart: `[bs, heads, rows]` seen as `[bs*rows, heads]`.

A view takes values in the order in which they lie. It can merge axes that lie side by side, and
split one; where the new axes are the old ones in another order, every value lands in another's
place, and no size tells. The axes had to be permuted first.
"""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, cast

import sympy
import torch

from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.expressions import Expression, Judge
from shapecheck.symbolic.shape_env import Operator, expression, sizes_of

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten
_RESHAPES = frozenset[object]({_aten.view, _aten._unsafe_view, _aten._reshape_alias})
Axes = tuple[Expression, ...]
Names = Mapping[Expression, Expression]


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
    before, after = _long(sizes_of(given)), _long(_wanted(args[1], result))
    for counts in _counts(before, after, recorder.judge):
        torn = _torn(*([size.xreplace(counts) for size in sizes] for sizes in (before, after)))
        if torn is not None:
            known = recorder.judge.names
            names = {known[one] for size in torn for one in size.free_symbols if one in known}
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


def _counts(before: list[Expression], after: list[Expression], judge: Judge) -> Iterator[Names]:
    """Names for numbers: none, and one that a loop has counted and the other side has as a name.

    What was stacked in a loop over steps has a number of axes, and is taken apart by the name.
    """
    yield {}
    named = [
        frozenset[Expression]().union(*(one.free_symbols for one in side))
        for side in (before, after)
    ]
    for symbol in judge.counted & (named[0] ^ named[1]):
        yield {judge.hints[symbol]: symbol}


def _torn(before: list[Expression], after: list[Expression]) -> Axes | None:
    """The first axes that lie in another order than they were seen in."""
    for here, there in _pieces(before, after):
        old, new = tuple(before[here]), tuple(after[there])
        if len(old) > 1 and len(new) > 1 and _are_named(old) and _matches(old, new):
            return (*old, *new)
    return None


def _wanted(given: object, result: torch.Tensor) -> list[Expression]:
    """The sizes as the code wrote them: the result has those of before where they are as large."""
    written = [expression(size) for size in cast("Sequence[int]", given)]
    return [
        made if size == -1 else size for size, made in zip(written, sizes_of(result), strict=True)
    ]


def _long(sizes: Iterable[Expression]) -> list[Expression]:
    """The sizes, without axes of one place."""
    return [size for size in sizes if size != 1]


def _pieces(before: list[Expression], after: list[Expression]) -> Iterator[tuple[slice, slice]]:
    """The shortest runs of axes on both sides that hold as many values, in order."""
    ends = [_products(axes) for axes in (before, after)]
    starts = [0, 0]
    for end, product in enumerate(ends[0], start=1):
        if product in ends[1][starts[1] :]:
            other = ends[1].index(product, starts[1]) + 1
            yield slice(starts[0], end), slice(starts[1], other)
            starts = [end, other]


def _products(axes: Sequence[Expression]) -> list[Expression]:
    found, product = list[Expression](), sympy.Integer(1)
    for size in axes:
        product = sympy.expand(product * size)
        found.append(product)
    return found


def _are_named(sizes: Axes) -> bool:
    """Whether two names are among them.

    One beside plain numbers is too little to tell: a number may be the half of a width.
    """
    return sum(bool(size.free_symbols) for size in sizes) > 1


def _matches(before: Axes, after: Axes) -> bool:
    """Whether every new axis is a product of some of the old ones, each taken once."""
    if not after:
        return not before
    for count in range(1, len(before) + 1):
        for chosen in combinations(range(len(before)), count):
            if sympy.expand(sympy.prod([before[one] for one in chosen]) - after[0]) == 0:
                rest = tuple(size for one, size in enumerate(before) if one not in chosen)
                if _matches(rest, after[1:]):
                    return True
    return False
