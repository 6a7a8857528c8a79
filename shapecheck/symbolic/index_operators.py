"""What torch's operators do with the values of integer tensors, as `bounds` follows them."""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sympy
import torch

from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.reach import Arithmetic
from shapecheck.symbolic.shape_env import expression

_aten = torch.ops.aten
INTEGERS = (torch.int64, torch.int32)

# Operator -> its axis argument, the default axis, and which of several results holds positions.
POSITIONS: Mapping[object, tuple[int, int | None, int]] = {
    _aten.argmax: (1, None, 0),
    _aten.argmin: (1, None, 0),
    _aten.argsort: (1, -1, 0),
    _aten.topk: (2, -1, 1),
    _aten.sort: (1, -1, 1),
}


class Ordered(NamedTuple):
    """Where an operator that picks values along an axis is told which, and what it returns where.

    `result` is the one of its results that holds positions, None for none; the others hold values.
    """

    axis: int
    default: int | None
    result: int | None


ORDERED: Mapping[object, Ordered] = {
    **{packet: Ordered(*place) for packet, place in POSITIONS.items()},
    **dict.fromkeys((_aten.max, _aten.min, _aten.cummax, _aten.cummin), Ordered(1, None, 1)),
    **dict.fromkeys((_aten.median, _aten.nanmedian), Ordered(1, None, 1)),
    _aten.mode: Ordered(1, -1, 1),
    _aten.kthvalue: Ordered(2, -1, 1),
    _aten.aminmax: Ordered(1, None, None),
}
# All positions occur, wherever the values are.
ORDERS = frozenset[object]({_aten.argsort, _aten.sort})
# Operators that leave positions of their result that nothing can be said of, as a mask does.
MASKS = frozenset[object](
    {
        _aten.where, _aten.masked_fill, _aten.scatter, _aten.index_put, _aten.index_fill,
        _aten.index_copy, _aten.masked_scatter, _aten.constant_pad_nd, _aten.tril, _aten.triu,
        _aten.cat, _aten.stack, _aten.copy, _aten.slice_scatter, _aten.select_scatter, _aten.sort,
        _aten.cumsum, _aten.cumprod, _aten.topk,
    }
)  # fmt: skip
ARITHMETIC: Mapping[object, Arithmetic] = {
    _aten.add: lambda a, b: a + b,
    _aten.sub: lambda a, b: a - b,
    _aten.rsub: lambda a, b: b - a,
    _aten.mul: lambda a, b: a * b,
    _aten.floor_divide: lambda a, b: sympy.floor(a / b),
    _aten.remainder: lambda a, b: sympy.Mod(a, b),
    _aten.maximum: sympy.Max,
    _aten.minimum: sympy.Min,
}
# Creation -> the argument with the one value, None: 0 or 1 by its name.
FILLED: Mapping[object, int] = {
    _aten.full: 1, _aten.full_like: 1, _aten.new_full: 2, _aten.scalar_tensor: 0, _aten.fill_: 1,
}  # fmt: skip
ZEROS = frozenset[object]({_aten.zeros, _aten.zeros_like, _aten.new_zeros, _aten.zero_})
ONES = frozenset[object]({_aten.ones, _aten.ones_like, _aten.new_ones})
# One value is everywhere.
FILLED_WHOLE = frozenset[object]({*ZEROS, *ONES, *FILLED})
# All values of the operands are in the result.
KEEPS = frozenset[object](
    {
        _aten.cat, _aten.stack, _aten.clone, _aten._to_copy, _aten.repeat, _aten.flip, _aten.roll,
        _aten.copy,
    }
)  # fmt: skip
JOINS = frozenset[object]({_aten.cat, _aten.stack})
# Memory that nothing was written to yet.
EMPTY = frozenset[object]({_aten.empty, _aten.empty_like, _aten.new_empty, _aten.empty_strided})
# Creations whose values come from elsewhere.
UNKNOWN = frozenset[object](
    {
        *EMPTY, _aten.rand, _aten.rand_like, _aten.randn, _aten.randn_like, _aten.randint,
        _aten.randint_like, _aten.randperm, _aten.bernoulli, _aten.multinomial,
    }
)  # fmt: skip
# Some values of the first operand are in the result.
TAKES = frozenset[object](
    {_aten.index, _aten.gather, _aten.index_select, _aten.embedding, _aten.take}
)
# Every value of the result is one of the operands', or a constant.
SELECTS = frozenset[object](
    {
        *KEEPS, _aten.where, _aten.masked_fill, _aten.masked_select, _aten.constant_pad_nd,
        _aten.clamp, _aten.clamp_min, _aten.clamp_max, _aten.amax, _aten.amin, _aten.maximum,
        _aten.minimum, _aten.tril, _aten.triu, _aten._unsafe_view,
    }
)  # fmt: skip
# The result is as large as the operands allow.
UNLIMITED = frozenset[object](
    {*KEEPS, *TAKES, _aten.add, _aten.sub, _aten.rsub, _aten.mul, _aten._unsafe_view}
)
# Sums of many values are new numbers, whatever the values are.
SUMS = frozenset[object]({_aten.sum, _aten.cumsum})
# In place, everything is written over.
WHOLE = frozenset[object](
    {_aten.copy_, _aten.fill_, _aten.zero_, _aten._foreach_copy_, _aten._foreach_zero_}
)
# In place, zeros take the place of some values, or limits that of those beyond.
FILLS = frozenset[object](
    {_aten.tril_, _aten.triu_, _aten.clamp_, _aten.clamp_min_, _aten.clamp_max_}
)
# Views that leave something out.
PARTS = frozenset[object](
    {
        _aten.slice, _aten.select, _aten.split, _aten.split_with_sizes, _aten.unbind, _aten.narrow,
        _aten.diagonal, _aten.as_strided, _aten.unfold,
    }
)  # fmt: skip
# Operators that keep one value of an axis, or the sum of it.
REDUCTIONS = frozenset[object]({_aten.sum, _aten.amax})
DIVISIONS = frozenset[object]({_aten.floor_divide, _aten.remainder})
LIMITS: Mapping[object, Sequence[Arithmetic]] = {
    _aten.clamp: (sympy.Max, sympy.Min),
    _aten.clamp_min: (sympy.Max,),
    _aten.clamp_max: (sympy.Min,),
}
# In-place operator -> the argument whose values are in the first operand afterwards.
WRITES: Mapping[object, int] = {
    _aten.copy_: 1, _aten.index_put_: 2, _aten._index_put_impl_: 2, _aten.index_copy_: 3,
    _aten.scatter_: 3, _aten.masked_fill_: 2, _aten.index_fill_: 3,
}  # fmt: skip
# The same, and operators that write into a copy.
_PUTS: Mapping[object, int] = {
    **WRITES, _aten.fill_: 1, _aten.put_: 2, _aten.masked_scatter_: 2, _aten.index_put: 2,
    _aten.index_copy: 3, _aten.index_fill: 3, _aten.scatter: 3, _aten.put: 2,
    _aten.masked_scatter: 2, _aten.slice_scatter: 1, _aten.select_scatter: 1,
    _aten.diagonal_scatter: 1,
}  # fmt: skip
# Those that may be told to add instead, by the argument behind the values.
_ADDING = frozenset[object](
    {_aten.index_put, _aten.index_put_, _aten._index_put_impl_, _aten.put, _aten.put_}
)
# Operator -> the argument with the upper limit.
_UPPER: Mapping[object, int] = {
    _aten.clamp: 2, _aten.clamp_: 2, _aten.clamp_max: 1, _aten.clamp_max_: 1, _aten.minimum: 1,
}  # fmt: skip
# Operator -> the argument that looks up, and the argument with the axis it runs over (None: 0).
LOOKUPS: Mapping[object, tuple[int, int | None]] = {
    _aten.embedding: (1, None),
    **dict.fromkeys(
        (
            _aten.gather, _aten.index_select, _aten.scatter, _aten.scatter_, _aten.scatter_add,
            _aten.scatter_add_, _aten.index_copy, _aten.index_copy_, _aten.index_add,
            _aten.index_add_, _aten.index_fill, _aten.index_fill_,
        ),
        (2, 1),
    ),
}  # fmt: skip
INDEXING = frozenset[object](
    {_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_}
)


def is_put(packet: object) -> bool:
    """Whether an operator puts values in the place of some of its first operand's."""
    return packet in _PUTS


def value_put(packet: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The values, or the one number, that it puts there; None where it combines or knows none."""
    place = _PUTS.get(packet)
    if place is None or len(args) <= place or kwargs.get("reduce") or kwargs.get("accumulate"):
        return None
    adds = packet in _ADDING and len(args) > place + 1 and args[place + 1]
    return None if adds else args[place]


def upper_limit(packet: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What `clamp` and the like put in the place of larger values; None without a limit."""
    place = _UPPER.get(packet)
    if place is None:
        return None
    return args[place] if len(args) > place else kwargs.get("max")


class Slice(NamedTuple):
    """The places [first, last) along an axis, counted from the front."""

    axis: int
    first: Expression
    last: Expression


def slice_of(args: Sequence[Any]) -> Slice | None:
    """What `aten.slice(base, axis, start, end, step)` takes; None when it leaves places out."""
    base = args[0]
    axis, start, end, step = [*args[1:], *_WHOLE[len(args) - 1 :]]
    if not base.dim() or step != 1:
        return None
    size = expression(base.shape[axis])
    last = size if end is None or end == sys.maxsize else _place(end, size)
    return Slice(axis % base.dim(), _place(start or 0, size), last)


def is_cut(packet: object, args: Sequence[Any]) -> bool:
    """Whether a view leaves something out; `x[:, 0]` begins with a slice that does not."""
    if packet is not _aten.slice:
        return packet in PARTS
    taken = slice_of(args)
    if taken is None or taken.first != 0:
        return True
    return taken.last != expression(args[0].shape[taken.axis])


def _place(given: int, size: Expression) -> Expression:
    place = expression(given)
    return size + place if place.is_number and place < 0 else place


_WHOLE: Sequence[int | None] = (0, None, None, 1)
