"""What the values of an integer tensor count: the axis that a contract says they index.

A contract's `indexes(...)` marks a tensor that nothing is known of, and what moves the values takes
the mark along; arithmetic makes other numbers of them. Where such a tensor crosses as an index of
another axis, it is told by name, before anything is looked up. Constants and positions that are
laid out (`zeros`, `arange`) are an index of any axis, and so is what follows from them alone. A
constant that takes the place of some values changes nothing of what the others count, unless the
values themselves say which: an upper limit, or a mask about them, makes them fit another axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from shapecheck.dims.expr import Poly
from shapecheck.symbolic.domains import Domains, Ids
from shapecheck.symbolic.index_limits import is_constant, is_limit, is_limited, makes_limited
from shapecheck.symbolic.index_marks import Index, IndexMarks, is_part
from shapecheck.symbolic.index_operators import (
    FILLED_WHOLE,
    FILLS,
    INTEGERS,
    ORDERED,
    SELECTS,
    TAKES,
    UNKNOWN,
    WHOLE,
    is_cut,
    is_put,
    value_put,
)
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.shape_env import Operator, expression, written
from shapecheck.symbolic.sizes import Size

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten


@dataclass(slots=True)
class Indices:
    """Follows what is marked through one trace."""

    recorder: Recorder
    _marks: IndexMarks = field(default_factory=IndexMarks)

    def of(self, tensor: torch.Tensor) -> Index | None:
        """What the values are known to count."""
        return self._marks.of(tensor)

    def mark(self, tensor: torch.Tensor, index: Index) -> None:
        """A contract says what the values count; laid out ones still count anything."""
        self._marks.say(tensor, index)

    def said(self, tensor: torch.Tensor) -> Index | None:
        """What a contract said of these very values, all of them."""
        return self._marks.said(tensor)

    def another(self, wanted: Index, tensor: torch.Tensor, domains: Domains) -> Index | Ids | None:
        """What the values count instead of `wanted`, if that is sure."""
        found = self.of(tensor)
        if found is not None:
            return found if self._differ(found, wanted) else None
        tag = domains.of(tensor)
        if not isinstance(tag, Ids) or not self.recorder.parties.is_model(tag.name):
            return None
        if self._marks.is_laid_out(tensor) or is_part(tensor):
            return None
        return tag if wanted.is_fixed and self._model(wanted) is None else None

    def ids(self, tensor: torch.Tensor) -> Ids | None:
        """The vocabulary that the values are known to be ids of."""
        found = self.of(tensor)
        name = self._model(found) if found is not None else None
        return Ids(name, found.where) if found is not None and name is not None else None

    def follow(
        self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: object
    ) -> None:
        """Pass on what `func` moves, and forget what it overwrites."""
        for one in self.recorder.unseen:
            self._marks.overwrite(one, None)
        made = [one for one in tensors(result) if one.layout is torch.strided]
        packet = func.overloadpacket
        if packet is _aten.lift_fresh:
            for one in made:  # a number of the code; of a list nobody knows where it comes from
                self._marks.made(one, None, frozenset(), laid_out=not one.dim(), limited=True)
            return
        if func.is_view:
            cut = is_cut(packet, args)
            for one in made:
                self._marks.view(args[0], one, cut=cut)
            return
        into = list(written(func, args, kwargs))
        given = [one for one in tensors((args, kwargs)) if not _is_any(one, into)]
        constants = packet in FILLED_WHOLE or all(map(self._marks.is_laid_out, given))
        laid_out = constants and not _is_unknown(func)
        givers = given[:0] if packet in FILLED_WHOLE else given
        sources = frozenset[int]().union(*map(self._marks.sources, givers))
        counted = self._of_results(packet, args, kwargs, made)
        limited = makes_limited(self._marks, packet, args)
        flags = self._are_flags(func, givers)
        first = args[0] if args else None
        for one in into:
            still = flags and self._marks.is_flag(one)
            if one is first:
                self._write(one, packet, args, kwargs, laid_out=laid_out)
            elif not _is_any(one, made):
                self._marks.overwrite(one, None, laid_out=laid_out and packet in WHOLE)
            self._marks.mix(one, sources, flags=still)
        for one, index in zip(made, counted, strict=True):
            if not _is_any(one, into):
                self._marks.made(
                    one, index, sources, laid_out=laid_out, limited=limited, flags=flags
                )
            elif one is not first:  # `out=`
                self._marks.overwrite(one, index, laid_out=laid_out, limited=limited)

    def _are_flags(self, func: Operator, givers: Sequence[torch.Tensor]) -> bool:
        """Whether a result follows from conditions and constants alone."""
        if _is_unknown(func):
            return False
        values = givers[:1] if func.overloadpacket in TAKES else givers
        return all(map(self._marks.is_flag, values))

    def _of_results(
        self,
        packet: object,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        made: Sequence[torch.Tensor],
    ) -> list[Index | None]:
        """What each of the results counts."""
        base = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if packet in ORDERED and base is not None:
            # Values along an axis, and where on it they stood.
            positions, values = ORDERED[packet].result, self.of(base)
            return [
                self._positions(packet, args, kwargs) if at == positions else values
                for at in range(len(made))
            ]
        index: Index | None = None
        if packet in TAKES and base is not None:
            index = self.of(base)
        elif is_put(packet) and base is not None:
            value = value_put(packet, args, kwargs)
            index = None if value is None else self._common(tensors((base, value)))
        elif packet in SELECTS:
            operands = [*args, *(value for name, value in kwargs.items() if name != "out")]
            index = self._common(tensors(operands))
        if index is not None and is_limit(self._marks, packet, args, kwargs):
            index = None
        return [index] * len(made)

    def _positions(
        self, packet: object, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Index | None:
        """Positions along the axis that was sorted, if it is one of a table.

        A batch, or what an algorithm lays out, is often the front of something longer.
        """
        base, place = args[0], ORDERED[packet]
        axis = args[place.axis] if len(args) > place.axis else kwargs.get("dim", place.default)
        if not isinstance(axis, int) or not base.dim():
            return None
        size = expression(base.shape[axis])
        name = self.recorder.single_name(size)
        if name is None:
            return None
        order = getattr(packet, "__name__", str(packet))
        index = Index(Poly.symbol(name), size, f"{order} along it", by_contract=False)
        return index if index.is_table else None

    def _common(self, operands: Iterable[torch.Tensor]) -> Index | None:
        """What all of these count, conditions and constants left aside; None when they differ."""
        counted = [
            self.of(one)
            for one in operands
            if one.dtype in INTEGERS and not self._marks.is_laid_out(one)
        ]
        return counted[0] if counted and all(one == counted[0] for one in counted) else None

    def _write(
        self,
        into: torch.Tensor,
        packet: object,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        laid_out: bool,
    ) -> None:
        """`into` holds what the operator wrote, beside what is left of it."""
        value = value_put(packet, args, kwargs)
        limits = list(tensors((args[1:], kwargs)))
        constants = all(is_constant(self._marks, one) for one in limits)
        if packet in WHOLE:
            plain = packet is _aten.zero_ or is_constant(self._marks, value)
            limited = not isinstance(value, torch.Tensor) or is_limited(self._marks, value)
            index = None if plain else self._common(tensors(value))
            self._marks.overwrite(into, index, laid_out=plain, limited=limited)
        elif laid_out and self._marks.is_laid_out(into):
            self._marks.overwrite(into, None, laid_out=True)
        elif is_limit(self._marks, packet, args, kwargs):
            self._marks.overwrite(into, None)
        elif is_constant(self._marks, value) or (packet in FILLS and constants):
            self._marks.keep(into)
        elif value is not None or packet in FILLS:
            others = tensors(value) if value is not None else limits
            self._marks.overwrite(into, self._common([into, *others]))
        else:
            self._marks.overwrite(into, None)

    def _differ(self, found: Index, wanted: Index) -> bool:
        both = all(self._model(one) is not None for one in (found, wanted))
        # Which ids of two vocabularies meet is for the domains to say.
        if found.axis == wanted.axis or both:
            return False
        if not (found.is_fixed or wanted.is_fixed):
            return False
        if not (found.by_contract or wanted.is_table):
            return False
        one, other = (Size(each.size, self.recorder) for each in (found, wanted))
        return one != other

    def _model(self, index: Index) -> str | None:
        """The one name of its axis, where that is a model's."""
        name = index.axis.as_symbol()
        return name if name is not None and self.recorder.parties.is_model(name) else None


def _is_any(tensor: torch.Tensor, others: Iterable[torch.Tensor]) -> bool:
    return any(tensor is other for other in others)


def _is_unknown(func: Operator) -> bool:
    """Whether the values that it makes come from elsewhere."""
    return func.overloadpacket in UNKNOWN or torch.Tag.nondeterministic_seeded in func.tags
