"""Bounds of indices: no tensor holds a value that the axis it looks up in does not have.

arange, topk and the like, constants and limits say which values there are for sure; arithmetic,
joins and choices pass them on (`reach`). Every look-up is held to them (`lookups`). Fake tensors
have no values, so torch itself cannot ask.
"""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import sympy
import torch

from shapecheck.symbolic import reach as reaches
from shapecheck.symbolic.index_marks import Index
from shapecheck.symbolic.index_operators import (
    ARITHMETIC,
    DIVISIONS,
    FILLED,
    FILLED_WHOLE,
    INTEGERS,
    JOINS,
    KEEPS,
    LIMITS,
    MASKS,
    ONES,
    ORDERS,
    POSITIONS,
    REDUCTIONS,
    TAKES,
    UNKNOWN,
    WRITES,
    is_cut,
    value_put,
)
from shapecheck.symbolic.joins import Joins
from shapecheck.symbolic.lookups import Lookups
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.reach import Arithmetic, Reach, Witness
from shapecheck.symbolic.shape_env import Operator, expression, sizes_of, storage_key, written

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten
# On a view of a part of a memory: its reach, and how often the memory had been written to.
_PART = "_shapecheck_part"
# A source of everything whose values follow from positions or sizes alone.
_LAID_OUT = -1


@dataclass(slots=True)
class Bounds:
    """What every integer tensor of one trace reaches, by memory."""

    recorder: Recorder
    said: Callable[[torch.Tensor], Index | None]
    _reach: dict[int, Reach] = field(default_factory=dict[int, Reach])
    # Where the values come from: what shares none of them is independent.
    _sources: dict[int, frozenset[int]] = field(default_factory=dict[int, "frozenset[int]"])
    _writes: Counter[int] = field(default_factory=Counter[int])
    _joins: Joins = field(default_factory=Joins)
    # Memory in which some positions hold something else: the largest may never be there.
    _masked: set[int] = field(default_factory=set[int])
    # Held so that an address is not reused; the memory of fake tensors is empty.
    _alive: dict[int, object] = field(default_factory=dict[int, object])
    _number: Iterator[int] = field(default_factory=count)
    lookups: Lookups = field(init=False)

    def __post_init__(self) -> None:
        self.lookups = Lookups(self.recorder, self.of, self.said, self._share)

    def of(self, value: object) -> Reach | None:
        """What a tensor, or a number beside tensors, is known to have."""
        if isinstance(value, int | torch.SymInt) and not isinstance(value, bool):
            return reaches.constant(expression(value))
        if not isinstance(value, torch.Tensor) or value.dtype not in INTEGERS:
            return None
        key = storage_key(value)[0]
        part = getattr(value, _PART, None)
        if part is None:
            return self._reach.get(key)
        found, writes = part
        return found if writes == self._writes[key] else None

    def forget(self, tensor: torch.Tensor) -> None:
        """Its values are others than those it was filled with: it is declared what they are."""
        self._reach.pop(storage_key(tensor)[0], None)

    def follow(
        self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: object
    ) -> None:
        """Check the indices that `func` looks up with, and keep what its result reaches."""
        packet = func.overloadpacket
        while self.recorder.unseen:
            self._overwrite(self.recorder.unseen.pop(), frozenset())
        self.lookups.follow(packet, args)
        made = [one for one in tensors(result) if one.layout is torch.strided]
        if func.is_view:
            if made:
                self._view(packet, args, made)
            return
        operands = [one for one in tensors((args, kwargs)) if one.layout is torch.strided]
        filled = packet in FILLED_WHOLE
        in_place = bool(args and made) and made[0] is args[0]
        # What fills a tensor says nothing of the operand whose shape it takes.
        givers = operands[:0] if filled and not in_place else operands
        sources = frozenset[int]().union(*map(self._sources_of, givers))
        if not sources:
            # One value is the same at every position.
            single = not any(one.dim() for one in made)
            laid_out = frozenset({_LAID_OUT} if packet not in UNKNOWN and not single else ())
            sources = laid_out | {next(self._number)}
        masked = packet in MASKS or any(map(self._is_masked, givers))
        _, _, which = POSITIONS.get(packet, (0, 0, 0))
        holder = made[which] if made else None
        found = None
        if holder is not None and holder.dtype in INTEGERS:
            found = self._found(func, args, kwargs, holder)
        elsewhere = [
            one for one in written(func, args, kwargs) if not in_place or one is not args[0]
        ]
        for one in elsewhere:
            self._overwrite(one, sources)
        if packet is _aten.cat and made:
            self._joins.remember(args, made[0], self.of, self._writes[storage_key(made[0])[0]])
        for one in made:
            if any(one is other for other in elsewhere):
                continue
            self._keep(one, found if one is holder else None, sources, in_place=in_place)
            if masked or in_place:
                self._masked.add(storage_key(one)[0])

    def _found(
        self,
        func: Operator,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        made: torch.Tensor,
    ) -> Reach | None:
        """What the one result that holds integers reaches."""
        packet = func.overloadpacket
        if packet is _aten.arange:
            return _range(args)
        if packet in POSITIONS:
            return self._positions(packet, args, kwargs, made)
        if packet in FILLED_WHOLE:
            value = args[FILLED[packet]] if packet in FILLED else int(packet in ONES)
            filled = self.of(value)
            return None if filled is None else filled.within(sizes_of(made))
        if packet in ARITHMETIC and len(args) == 2 and not kwargs:
            return self._combined(args[0], args[1], packet)
        if packet in LIMITS:
            return self._limited(args[0], args[1:], kwargs, LIMITS[packet])
        if packet is _aten.where and args[1:]:
            return self._chosen(args[0], args[1:])
        if packet is _aten.masked_fill:
            return self._chosen(args[1], (args[0], *args[2:]))
        if packet in REDUCTIONS:
            whole = self.of(args[0])
            return whole if whole is not None and whole.sparse else None
        if packet in KEEPS:
            parts = [found for one in tensors(args) if (found := self.of(one)) is not None]
            known = reaches.joined(parts)
            # An element of a join has only what its own part has.
            return replace(known, free=False) if known and packet in JOINS else known
        if packet in TAKES:
            return self._taken(args, made)
        return self.of(value_put(packet, args, kwargs)) if packet in WRITES else None

    def _positions(
        self, packet: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], made: torch.Tensor
    ) -> Reach | None:
        where, default, _ = POSITIONS[packet]
        axis = args[where] if len(args) > where else kwargs.get("dim", default)
        given = args[0]
        if not isinstance(axis, int) or not given.dim():
            return None
        anywhere = given.dtype.is_floating_point and not self._is_masked(given)
        if not anywhere and packet not in ORDERS:
            return None
        size = expression(given.shape[axis])
        ends = Witness(sympy.Integer(0)), Witness(size - 1)
        return Reach(witnesses=ends, free=anywhere).within([size, *sizes_of(made)])

    def _taken(self, args: tuple[Any, ...], made: torch.Tensor) -> Reach | None:
        table, by = args[0], list(tensors(args[1:]))
        # A condition takes values out, and so may an index that comes from the values.
        if any(one.dtype is torch.bool for one in by):
            return None
        if any(self._share(table, one) for one in by):
            return None
        found = self.of(table)
        return found.within(sizes_of(made)) if found is not None and found.free else None

    def _combined(self, left: object, right: object, packet: object) -> Reach | None:
        one, other = self.of(left), self.of(right)
        if one is None or other is None or self._share(left, right):
            return None
        if packet in DIVISIONS and any(divisor.value == 0 for divisor in other.witnesses):
            return None
        return reaches.combined(one, other, ARITHMETIC[packet], apart=_are_apart(left, right))

    def _limited(
        self,
        given: object,
        limits: Sequence[object],
        kwargs: Mapping[str, Any],
        functions: Sequence[Arithmetic],
    ) -> Reach | None:
        """A value that the code limits others to is one that it takes to be there."""
        found, named = self.of(given), [kwargs.get("min"), kwargs.get("max")]
        if any(isinstance(limit, torch.Tensor) for limit in (*limits, *named)):
            return None  # which element meets which limit is not known
        for limit, function in zip(limits or named, functions, strict=False):
            at = self.of(limit) if limit is not None else None
            if limit is None or at is None:
                continue
            value = at.witnesses[0].value
            bounded = found.mapped(lambda one, f=function, v=value: f(one, v)) if found else None
            found = bounded or Reach(witnesses=(Witness(value),))
        return found

    def _chosen(self, condition: torch.Tensor, arms: Sequence[object]) -> Reach | None:
        """An arm that the condition is about may never be taken where it reaches farthest."""
        about = self._sources_of(condition)
        # What stands in for some values is often just what a second choice takes out again.
        free = (
            self.of(arm)
            for arm in arms
            if not (self._sources_of(arm) & about or self._holds_stand_ins(arm))
        )
        return reaches.chosen([arm for arm in free if arm is not None])

    def _view(self, packet: object, args: tuple[Any, ...], made: Sequence[torch.Tensor]) -> None:
        base = args[0]
        cut = is_cut(packet, args)
        if not cut and getattr(base, _PART, None) is None:
            return  # all of the memory: it is kept by memory
        found = self.of(base)
        whole: Reach | None = None
        if packet is _aten.slice and getattr(base, _PART, None) is None:
            whole = self._joins.part(args, self._writes[storage_key(base)[0]])
        for one in made:
            part = whole or found
            if cut:
                part = part.within(sizes_of(one)) if part is not None and part.free else whole
            setattr(one, _PART, (part, self._writes[storage_key(one)[0]]))

    def _keep(
        self, tensor: torch.Tensor, found: Reach | None, sources: frozenset[int], *, in_place: bool
    ) -> None:
        key, storage = storage_key(tensor)
        self._alive[key] = storage
        if in_place:
            self._writes[key] += 1
            sources |= self._sources_of(tensor)
            if found is not None:
                # Beside what was written stands what was there.
                found = Reach(witnesses=found.witnesses).within(sizes_of(tensor))
        self._sources[key] = sources
        if found is None or tensor.dtype not in INTEGERS:
            self._reach.pop(key, None)
        else:
            self._reach[key] = found

    def _overwrite(self, tensor: torch.Tensor, sources: frozenset[int]) -> None:
        """Something wrote to the memory of a tensor, and nothing is known of what it wrote."""
        if tensor.layout is not torch.strided:
            return
        self._keep(tensor, None, sources, in_place=True)
        self._masked.add(storage_key(tensor)[0])

    def _share(self, left: object, right: object) -> bool:
        """Whether one may depend on the other, beyond where their elements are."""
        return bool((self._sources_of(left) & self._sources_of(right)) - {_LAID_OUT})

    def _holds_stand_ins(self, value: object) -> bool:
        return isinstance(value, torch.Tensor) and storage_key(value)[0] in self._masked

    def _is_masked(self, tensor: torch.Tensor) -> bool:
        key = storage_key(tensor)[0]
        return not tensor.dtype.is_floating_point or key in self._masked

    def _sources_of(self, value: object) -> frozenset[int]:
        """Where the values come from; a tensor that nothing made here is a source of its own."""
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return frozenset()
        key, storage = storage_key(value)
        if key not in self._sources:
            self._alive[key] = storage
            self._sources[key] = frozenset({next(self._number)})
        return self._sources[key]


def _range(args: tuple[Any, ...]) -> Reach | None:
    # arange(end), arange(start, end), arange(start, end, step)
    limits = [expression(one) for one in args if isinstance(one, int | torch.SymInt)]
    if len(limits) != len(args) or (len(limits) == 3 and limits[2] != 1):
        return None
    start, end = (limits[0], limits[1]) if len(limits) > 1 else (sympy.Integer(0), limits[0])
    return Reach(witnesses=(Witness(start), Witness(end - 1))).within([end - start])


def _are_apart(left: object, right: object) -> bool:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return True
    axes = zip(reversed(left.shape), reversed(right.shape), strict=False)
    return all(expression(one) == 1 or expression(other) == 1 for one, other in axes)
