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
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import sympy
import torch

from shapecheck.symbolic import reach as reaches
from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.index_operators import (
    ARITHMETIC,
    DIVISIONS,
    FILLED,
    INDEXING,
    JOINS,
    KEEPS,
    LIMITS,
    LOOKUPS,
    MASKS,
    ONES,
    ORDERS,
    POSITIONS,
    REDUCTIONS,
    TAKES,
    UNKNOWN,
    WRITES,
    ZEROS,
    is_cut,
)
from shapecheck.symbolic.joins import Joins
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.reach import Arithmetic, Reach, Witness
from shapecheck.symbolic.shape_env import Operator, expression, storage_key, written

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten
_INTEGERS = (torch.int64, torch.int32)
# Far more requests than any fixed axis has places.
_MANY_ROWS = sympy.Integer(1_000_003)
# On a view of a part of a memory: its reach, and how often the memory had been written to.
_PART = "_shapecheck_part"
# A source of everything whose values follow from positions or sizes alone.
_LAID_OUT = -1


@dataclass(slots=True)
class Bounds:
    """What every integer tensor of one trace reaches, by memory."""

    recorder: Recorder
    _reach: dict[int, Reach] = field(default_factory=dict[int, Reach])
    # Where the values come from: what shares none of them is independent.
    _sources: dict[int, frozenset[int]] = field(default_factory=dict[int, "frozenset[int]"])
    _writes: Counter[int] = field(default_factory=Counter[int])
    _joins: Joins = field(default_factory=Joins)
    # Memory in which some positions hold something else: the largest may never be there.
    _masked: set[int] = field(default_factory=set[int])
    # Comparisons that were looked at, and whether they all come out the same for one row.
    _compared: dict[Expression, int] = field(default_factory=dict[Expression, int])
    _same_code: dict[Expression, bool] = field(default_factory=dict[Expression, bool])
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
        while self.recorder.unseen:
            self._overwrite(self.recorder.unseen.pop(), frozenset())
        self._look_up(packet, args)
        made = [one for one in tensors(result) if one.layout is torch.strided]
        if func.is_view:
            if made:
                self._view(packet, args, made)
            return
        operands = [one for one in tensors((args, kwargs)) if one.layout is torch.strided]
        filled = packet in ZEROS or packet in ONES or packet in FILLED
        in_place = bool(args and made) and made[0] is args[0]
        # What fills a tensor says nothing of the operand whose shape it takes.
        givers = operands[:0] if filled and not in_place else operands
        sources = frozenset[int]().union(*map(self._sources_of, givers))
        if not sources:
            laid_out = frozenset[int]() if packet in UNKNOWN else frozenset({_LAID_OUT})
            sources = laid_out | {next(self._number)}
        masked = packet in MASKS or any(map(self._is_masked, givers))
        _, _, which = POSITIONS.get(packet, (0, 0, 0))
        holder = made[which] if made else None
        found = None
        if holder is not None and holder.dtype in _INTEGERS:
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
        if packet in ZEROS or packet in ONES or packet in FILLED:
            value = args[FILLED[packet]] if packet in FILLED else int(packet in ONES)
            filled = self.of(value)
            return None if filled is None else filled.within(_sizes(made))
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
        return self.of(args[WRITES[packet]]) if packet in WRITES else None

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
        return Reach(witnesses=ends, free=anywhere).within([size, *_sizes(made)])

    def _taken(self, args: tuple[Any, ...], made: torch.Tensor) -> Reach | None:
        table, by = args[0], list(tensors(args[1:]))
        # A condition takes values out, and so may an index that comes from the values.
        if any(one.dtype is torch.bool for one in by):
            return None
        if any(self._share(table, one) for one in by):
            return None
        found = self.of(table)
        return found.within(_sizes(made)) if found is not None and found.free else None

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
                part = part.within(_sizes(one)) if part is not None and part.free else whole
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
                found = Reach(witnesses=found.witnesses).within(_sizes(tensor))
        self._sources[key] = sources
        if found is None or tensor.dtype not in _INTEGERS:
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

    # -- look-ups ------------------------------------------------------------------------------

    def _look_up(self, packet: object, args: tuple[Any, ...]) -> None:
        if packet in INDEXING:
            indices = cast("Sequence[torch.Tensor | None]", args[1])
            if not any(index is not None and index.dtype is torch.bool for index in indices):
                for axis, index in enumerate(indices):
                    if index is not None:
                        self._check(index, args[0].shape[axis], wraps=True)
        elif packet in LOOKUPS:
            position, where = LOOKUPS[packet]
            if args[0].dim():
                axis = 0 if where is None else args[where]
                self._check(args[position], args[0].shape[axis], wraps=False)

    def _check(self, index: torch.Tensor, size: int, *, wraps: bool) -> None:
        found = self.beyond(index, expression(size), wraps=wraps)
        if found is not None:
            self._report(found[0], expression(size), found[1])

    def beyond(
        self, index: torch.Tensor, large: Expression, *, wraps: bool = False, pad: int | None = None
    ) -> tuple[Expression, str] | None:
        """A value that an axis of this size does not have, and in which batch; None without one."""
        found = self.of(index)
        if found is None:
            return None
        there = _sizes(index)
        for one in found.witnesses:
            for numbers, said in self._settings(large):
                value, axis = _number(one.value, numbers), _number(large, numbers)
                # A size that depends on data may be 0.
                present = (_number(part, numbers) or 0 for part in (*one.present, *there))
                if value is None or axis is None or min(present, default=1) <= 0:
                    continue
                if value != pad and (value >= axis or value < (-axis if wraps else 0)):
                    return one.value, said
        return None

    def _settings(self, large: Expression) -> Iterator[tuple[Mapping[Expression, Expression], str]]:
        """The numbers of this run, and the same with one row in the batch, or with many.

        Those only while no comparison of the run comes out otherwise for them: after one that
        does, the code would be another. Many rows may well index what is made for as many as there
        can be, so they are asked of axes that only the algorithm has.
        """
        judge = self.recorder.judge
        known = {symbol: judge.hints[symbol] for symbol in judge.names}
        yield known, ""
        rows = {one for one, name in judge.names.items() if self.recorder.parties.is_batch(name)}
        others = {sympy.Integer(1): " of 1 row"}
        names = (judge.names.get(one, "") for one in large.free_symbols)
        if self.recorder.parties.are_algorithm(names):
            others[_MANY_ROWS] = " of many rows"
        for number, said in others.items():
            numbers = {one: number if one in rows else known[one] for one in known}
            if self._is_same_code(number, numbers):
                yield numbers, said

    def _is_same_code(self, rows: Expression, numbers: Mapping[Expression, Expression]) -> bool:
        compared, seen = self.recorder.compared, self._compared.get(rows, 0)
        if self._same_code.get(rows, True):
            new = list(compared)[seen:]
            self._same_code[rows] = all(_replaced(one, numbers) == compared[one] for one in new)
        self._compared[rows] = len(compared)
        return self._same_code[rows]

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


def _number(value: Expression, numbers: Mapping[Expression, Expression]) -> int | None:
    """The value of a size; None where it depends on data or is none."""
    found = _replaced(value, numbers)
    return int(found) if found is not None and found.is_Integer else None


def _replaced(expr: Expression, numbers: Mapping[Expression, Expression]) -> Expression | None:
    try:
        return expr.xreplace(numbers)
    except ZeroDivisionError:
        return None


def _are_apart(left: object, right: object) -> bool:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return True
    axes = zip(reversed(left.shape), reversed(right.shape), strict=False)
    return all(expression(one) == 1 or expression(other) == 1 for one, other in axes)


def _sizes(tensor: torch.Tensor) -> list[Expression]:
    return [expression(size) for size in tensor.shape]
