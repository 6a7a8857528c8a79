"""Bounds of indices: no tensor holds a value that the axis it looks up in does not have.

arange, topk and the like, constants and limits say which values there are for sure; arithmetic,
joins and choices pass them on (`reach`). Every look-up is held to them, once with the numbers of
the run and once for a batch of one row. Fake tensors have no values, so torch itself cannot ask.
"""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import sympy
import torch

from shapecheck.symbolic import reach as reaches
from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.reach import Arithmetic, Reach, Witness
from shapecheck.symbolic.shape_env import Operator, expression, storage_key

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten
_INTEGERS = (torch.int64, torch.int32)
_FOLLOWED = (*_INTEGERS, torch.bool)
# On a view of a part of a memory: its reach, and how often the memory had been written to.
_PART = "_shapecheck_part"

# Operator -> its axis argument, the default axis, and which of several results holds positions.
_POSITIONS: Mapping[object, tuple[int, int | None, int]] = {
    _aten.argmax: (1, None, 0),
    _aten.argmin: (1, None, 0),
    _aten.argsort: (1, -1, 0),
    _aten.topk: (2, -1, 1),
    _aten.sort: (1, -1, 1),
}
_ARITHMETIC: Mapping[object, Arithmetic] = {
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
_FILLED: Mapping[object, int] = {
    _aten.full: 1, _aten.full_like: 1, _aten.new_full: 2, _aten.scalar_tensor: 0, _aten.fill_: 1,
}  # fmt: skip
_ZEROS = frozenset[object]({_aten.zeros, _aten.zeros_like, _aten.new_zeros, _aten.zero_})
_ONES = frozenset[object]({_aten.ones, _aten.ones_like, _aten.new_ones})
# All values of the operands are in the result.
_KEEPS = frozenset[object](
    {
        _aten.cat, _aten.stack, _aten.clone, _aten._to_copy, _aten.repeat, _aten.flip, _aten.roll,
        _aten.repeat_interleave, _aten.copy,
    }
)  # fmt: skip
# Some values of the first operand are in the result.
_TAKES = frozenset[object]({_aten.index, _aten.gather, _aten.index_select, _aten.embedding})
# Views that leave something out.
_PARTS = frozenset[object](
    {
        _aten.slice, _aten.select, _aten.split, _aten.split_with_sizes, _aten.unbind, _aten.narrow,
        _aten.diagonal, _aten.as_strided, _aten.unfold,
    }
)  # fmt: skip
# Operators that keep one value of an axis, or the sum of it.
_REDUCTIONS = frozenset[object]({_aten.sum, _aten.amax})
_LIMITS: Mapping[object, Sequence[Arithmetic]] = {
    _aten.clamp: (sympy.Max, sympy.Min),
    _aten.clamp_min: (sympy.Max,),
    _aten.clamp_max: (sympy.Min,),
}
# In-place operator -> the argument whose values are in the first operand afterwards.
_WRITES: Mapping[object, int] = {
    _aten.copy_: 1, _aten.index_put_: 2, _aten._index_put_impl_: 2, _aten.index_copy_: 3,
    _aten.scatter_: 3, _aten.masked_fill_: 2, _aten.index_fill_: 3,
}  # fmt: skip
# Operator -> the argument that looks up, and the argument with the axis it runs over (None: 0).
_LOOKUPS: Mapping[object, tuple[int, int | None]] = {
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
_INDEXING = frozenset[object](
    {_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_}
)


@dataclass(slots=True)
class Bounds:
    """What every integer tensor of one trace reaches, by memory."""

    recorder: Recorder
    _reach: dict[int, Reach] = field(default_factory=dict[int, Reach])
    # The operators that made the values, of integers and of conditions about them.
    _sources: dict[int, frozenset[int]] = field(default_factory=dict[int, "frozenset[int]"])
    _writes: Counter[int] = field(default_factory=Counter[int])
    # Held so that an address is not reused; the memory of fake tensors is empty.
    _alive: dict[int, object] = field(default_factory=dict[int, object])
    _number: Iterator[int] = field(default_factory=count)

    def of(self, value: object) -> Reach | None:
        """What a tensor, or a number beside tensors, is known to have."""
        if isinstance(value, int | torch.SymInt) and not isinstance(value, bool):
            return reaches.constant(expression(value))
        if not isinstance(value, torch.Tensor) or value.dtype not in _INTEGERS:
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
        self._look_up(packet, args)
        made = [one for one in tensors(result) if one.dtype in _FOLLOWED]
        if not made:
            return
        if func.is_view:
            self._view(packet, args[0], made)
            return
        found = self._found(packet, args, kwargs, made)
        sources = frozenset[int]().union(*map(self._sources_of, tensors((args, kwargs))))
        if packet in _POSITIONS or packet in _LIMITS or packet is _aten.arange:
            sources |= {next(self._number)}
        in_place = bool(args) and made[0] is args[0]
        _, _, which = _POSITIONS.get(packet, (0, 0, 0))
        holder = list(tensors(result))[which]
        for one in made:
            self._keep(one, found if one is holder else None, sources, in_place=in_place)

    def _found(
        self,
        packet: object,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        made: Sequence[torch.Tensor],
    ) -> Reach | None:
        """What the one result that may hold integers reaches."""
        if packet is _aten.arange:
            return _range(args)
        if packet in _POSITIONS:
            return _positions(packet, args, kwargs)
        if packet in _ZEROS or packet in _ONES or packet in _FILLED:
            value = args[_FILLED[packet]] if packet in _FILLED else int(packet in _ONES)
            filled = self.of(value)
            return None if filled is None else filled.within(_sizes(made[0]))
        if packet in _ARITHMETIC and len(args) == 2 and not kwargs:
            return self._combined(args[0], args[1], _ARITHMETIC[packet])
        if packet in _LIMITS:
            return self._limited(args[0], args[1:], kwargs, _LIMITS[packet])
        if packet is _aten.where and args[1:]:
            return self._chosen(args[0], args[1:])
        if packet is _aten.masked_fill:
            return self._chosen(args[1], (args[0], *args[2:]))
        if packet in _REDUCTIONS:
            whole = self.of(args[0])
            return whole if whole is not None and whole.sparse else None
        if packet in _KEEPS:
            parts = [found for one in tensors(args) if (found := self.of(one)) is not None]
            return reaches.joined(parts)
        if packet in _TAKES:
            table = self.of(args[0])
            return table.within(_sizes(made[0])) if table is not None and table.free else None
        return self.of(args[_WRITES[packet]]) if packet in _WRITES else None

    def _combined(self, left: object, right: object, arithmetic: Arithmetic) -> Reach | None:
        one, other = self.of(left), self.of(right)
        if one is None or other is None or self._sources_of(left) & self._sources_of(right):
            return None
        return reaches.combined(one, other, arithmetic, apart=_are_apart(left, right))

    def _limited(
        self,
        given: object,
        limits: Sequence[object],
        kwargs: Mapping[str, Any],
        functions: Sequence[Arithmetic],
    ) -> Reach | None:
        """A value that the code limits others to is one that it takes to be there."""
        found, named = self.of(given), [kwargs.get("min"), kwargs.get("max")]
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
        free = (self.of(arm) for arm in arms if not self._sources_of(arm) & about)
        return reaches.chosen([arm for arm in free if arm is not None])

    def _view(self, packet: object, base: torch.Tensor, made: Sequence[torch.Tensor]) -> None:
        cut = packet in _PARTS
        if not cut and getattr(base, _PART, None) is None:
            return  # all of the memory: it is kept by memory
        found = self.of(base)
        for one in made:
            part = found
            if cut:
                part = found.within(_sizes(one)) if found is not None and found.free else None
            setattr(one, _PART, (part, self._writes[storage_key(one)[0]]))

    def _keep(
        self, tensor: torch.Tensor, found: Reach | None, sources: frozenset[int], *, in_place: bool
    ) -> None:
        key, storage = storage_key(tensor)
        self._alive[key] = storage
        if in_place:
            self._writes[key] += 1
            sources |= self._sources.get(key, frozenset())
            if found is not None:
                # Beside what was written stands what was there.
                found = Reach(witnesses=found.witnesses).within(_sizes(tensor))
        self._sources[key] = sources
        if found is None or tensor.dtype not in _INTEGERS:
            self._reach.pop(key, None)
        else:
            self._reach[key] = found

    def _sources_of(self, value: object) -> frozenset[int]:
        if not isinstance(value, torch.Tensor) or value.dtype not in _FOLLOWED:
            return frozenset()
        return self._sources.get(storage_key(value)[0], frozenset())

    # -- look-ups ------------------------------------------------------------------------------

    def _look_up(self, packet: object, args: tuple[Any, ...]) -> None:
        if packet in _INDEXING:
            indices = cast("Sequence[torch.Tensor | None]", args[1])
            if not any(index is not None and index.dtype is torch.bool for index in indices):
                for axis, index in enumerate(indices):
                    if index is not None:
                        self._check(index, args[0].shape[axis], wraps=True)
        elif packet in _LOOKUPS:
            position, where = _LOOKUPS[packet]
            if args[0].dim():
                axis = 0 if where is None else args[where]
                self._check(args[position], args[0].shape[axis], wraps=False)

    def _check(self, index: torch.Tensor, size: int, *, wraps: bool) -> None:
        found = self.of(index)
        if found is None:
            return
        large, there = expression(size), _sizes(index)
        for one in found.witnesses:
            for numbers, said in self._settings():
                value = one.value.xreplace(numbers)
                axis = large.xreplace(numbers)
                present = (part.xreplace(numbers) for part in (*one.present, *there))
                if not (value.is_integer and axis.is_integer) or value.free_symbols:
                    continue
                outside = value >= axis or value < (-axis if wraps else 0)
                if outside and all(part > 0 for part in present):
                    self._report(one.value, large, said)
                    return

    def _settings(self) -> Iterator[tuple[Mapping[Expression, Expression], str]]:
        """The numbers of this run, and the same with one row in the batch."""
        judge = self.recorder.judge
        known = {symbol: judge.hints[symbol] for symbol in judge.names}
        yield known, ""
        rows = {one for one, name in judge.names.items() if self.recorder.parties.is_batch(name)}
        yield {one: sympy.Integer(1) if one in rows else known[one] for one in known}, " of 1 row"

    def _report(self, value: Expression, size: Expression, said: str) -> None:
        operation, judge = self.recorder.operation, self.recorder.judge
        if operation is None:
            return
        names = {judge.names[one] for one in value.free_symbols | size.free_symbols}
        reached, axis = judge.text(value), judge.text(size)
        batch = f" in a batch{said}" if said else ""
        self.recorder.add(
            Meeting(
                code="SHP401",
                text=f"an index reaches {reached} in an axis of {axis}{batch}",
                names=frozenset(names),
                sides=(axis, reached),
                site=operation.site,
                operation=operation.name,
                origins=self.recorder.origins(operation.operands),
            )
        )


def _range(args: tuple[Any, ...]) -> Reach | None:
    # arange(end), arange(start, end), arange(start, end, step)
    limits = [expression(one) for one in args if isinstance(one, int | torch.SymInt)]
    if len(limits) != len(args) or (len(limits) == 3 and limits[2] != 1):
        return None
    start, end = (limits[0], limits[1]) if len(limits) > 1 else (sympy.Integer(0), limits[0])
    return Reach(witnesses=(Witness(start), Witness(end - 1))).within([end - start])


def _positions(packet: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Reach | None:
    where, default, _ = _POSITIONS[packet]
    axis = args[where] if len(args) > where else kwargs.get("dim", default)
    if not isinstance(axis, int) or not args[0].dim():
        return None
    last = expression(args[0].shape[axis]) - 1
    return Reach(witnesses=(Witness(sympy.Integer(0)), Witness(last)), free=True)


def _are_apart(left: object, right: object) -> bool:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return True
    axes = zip(reversed(left.shape), reversed(right.shape), strict=False)
    return all(expression(one) == 1 or expression(other) == 1 for one, other in axes)


def _sizes(tensor: torch.Tensor) -> list[Expression]:
    return [expression(size) for size in tensor.shape]
