"""Look-ups: an index is held to the axis that it looks up in, for every batch that runs this code.

Once with the numbers of the run, and once with one row in the batch, or with many. So is what a
contract says: positions along one axis may be all of them, and an axis of one place, or of fewer
that is made of the same names, does not have the last. Not so of values that the code has limited,
or is known to have laid out.
"""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import sympy
import torch

from shapecheck.dims.expr import Poly
from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.index_marks import Index
from shapecheck.symbolic.index_operators import INDEXING, LOOKUPS
from shapecheck.symbolic.reach import Reach
from shapecheck.symbolic.shape_env import expression, sizes_of

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_PADDED = "take the pad out first (a mask, `where`, `clamp(min=0)`), and what it gave afterwards"
# Findings of an operator that say why its index reaches too far.
_EXPLAINS = {"SHP203", "SHP305"}
# Far more requests than any fixed axis has places.
_MANY_ROWS = sympy.Integer(1_000_003)


@dataclass(slots=True)
class Lookups:
    """The look-ups of one trace: `reach` says what values a tensor is known to have, `said` what a
    contract says they count, and `share` whether one tensor follows from what another does.
    """

    recorder: Recorder
    reach: Callable[[object], Reach | None]
    said: Callable[[torch.Tensor], Index | None]
    share: Callable[[object, object], bool]
    # Comparisons that were looked at, and whether they all come out the same for one row.
    _compared: dict[Expression, int] = field(default_factory=dict[Expression, int])
    _same_code: dict[Expression, bool] = field(default_factory=dict[Expression, bool])

    def follow(self, packet: object, args: tuple[Any, ...]) -> None:
        """Report an index that an operator looks up with and that reaches beyond its axis.

        Not so where it is known by now that the ids are others, or that there is no row at all.
        """
        operation = self.recorder.operation
        if operation is not None and _EXPLAINS & {one.code for one in operation.meetings}:
            return
        if packet in INDEXING:
            indices = cast("Sequence[torch.Tensor | None]", args[1])
            if not any(index is not None and index.dtype is torch.bool for index in indices):
                written = tuple(args[2:3])
                for axis, index in enumerate(indices):
                    if index is not None:
                        self._check(index, args[0].shape[axis], wraps=True, written=written)
        elif packet in LOOKUPS:
            position, where = LOOKUPS[packet]
            if args[0].dim():
                axis = 0 if where is None else args[where]
                self._check(args[position], args[0].shape[axis], wraps=False)

    def _check(
        self, index: torch.Tensor, size: int, *, wraps: bool, written: tuple[object, ...] = ()
    ) -> None:
        large = expression(size)
        found, said = self.beyond(index, large, wraps=wraps), self.said(index)
        axis = self._text(large)
        if found is not None:
            value, batch = found
            text = f"an index reaches {self._text(value)} in an axis of {axis}"
            self._report("SHP401", f"{text} in a batch{batch}" if batch else text, value, large)
        elif said is None or self._reaches(index) or self._is_empty(index):
            return
        elif self._is_longer(said, large):
            text = f"{said} ({said.where}) look up an axis of {axis}"
            self._report("SHP307", text, said.size, large)
        elif self._is_another_table(said, large):
            text = f"{said} ({said.where}) look up an axis of {axis}"
            remedy = f"look them up along {said.axis}, or hand over positions along {axis}"
            self._report("SHP307", text, said.size, large, remedy)
        elif said.pad is not None and not wraps:
            text = f"the pad {said.pad} among {said} ({said.where}) looks up an axis of {axis}"
            self._report("SHP307", text, said.size, large, _PADDED)
        elif self._is_overwritten(said, large, index, written):
            text = (
                f"the pad {said.pad} among {said} ({said.where}) writes to the end of an axis of "
                f"{axis}"
            )
            self._report("SHP307", text, said.size, large, _PADDED)

    def _is_overwritten(
        self, said: Index, large: Expression, index: torch.Tensor, written: tuple[object, ...]
    ) -> bool:
        """Whether the pad, which counts from the end, writes to a place that is a position too.

        What was read there can be left out later. Not so where an axis has places of its own for
        pads, or the values that are written follow from the index.
        """
        if said.pad is None or said.pad >= 0 or not written:
            return False
        return said.size == large and not any(self.share(index, value) for value in written)

    def beyond(
        self, index: torch.Tensor, large: Expression, *, wraps: bool = False, pad: int | None = None
    ) -> tuple[Expression, str] | None:
        """A value that an axis of this size does not have, and in which batch; None without one."""
        found = self.reach(index)
        if found is None:
            return None
        there = sizes_of(index)
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
        judge, known = self.recorder.judge, self._known()
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

    def _is_longer(self, said: Index, large: Expression) -> bool:
        # Of two axes that are not related either may be the longer, and a number may be any size.
        names = large.free_symbols
        related = large == 1 or (names and names <= said.size.free_symbols)
        if not said.is_fixed or not related:
            return False
        known = self._known()
        there, axis = _number(said.size, known), _number(large, known)
        return there is not None and axis is not None and there > axis

    def _is_another_table(self, said: Index, large: Expression) -> bool:
        name = self.recorder.single_name(large)
        if name is None or not said.is_table:
            return False
        axis = Index(Poly.symbol(name), large, said.where)
        return axis.is_table and axis.axis != said.axis

    def _is_empty(self, index: torch.Tensor) -> bool:
        known = self._known()
        return any(_number(size, known) == 0 for size in sizes_of(index))

    def _reaches(self, index: torch.Tensor) -> bool:
        # Zeros are among positions of any number.
        found = self.reach(index)
        return found is not None and any(one.value != 0 for one in found.witnesses)

    def _known(self) -> dict[Expression, Expression]:
        judge = self.recorder.judge
        return {symbol: judge.hints[symbol] for symbol in judge.names}

    def _text(self, size: Expression) -> str:
        return self.recorder.judge.text(size)

    def _report(
        self, code: str, text: str, value: Expression, size: Expression, remedy: str = ""
    ) -> None:
        operation, judge = self.recorder.operation, self.recorder.judge
        if operation is None:
            return
        names = {judge.names[one] for one in value.free_symbols | size.free_symbols}
        self.recorder.add(
            Meeting(
                code=code,
                text=text,
                names=frozenset(names),
                sides=(self._text(size), self._text(value)),
                site=operation.site,
                operation=operation.name,
                origins=self.recorder.origins(operation.operands),
                remedy=remedy,
            )
        )


def _number(value: Expression, numbers: Mapping[Expression, Expression]) -> int | None:
    """The value of a size; None where it depends on data or is none."""
    found = _replaced(value, numbers)
    return int(found) if found is not None and found.is_Integer else None


def _replaced(expr: Expression, numbers: Mapping[Expression, Expression]) -> Expression | None:
    try:
        return expr.xreplace(numbers)
    except ZeroDivisionError:
        return None
