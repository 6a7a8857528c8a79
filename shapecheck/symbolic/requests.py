"""Requests of a batch that are mixed: what one gets depends on the others.

A reduction over the axis of requests that keeps the axis gives one row; an elementwise operator
spreads that row over the requests again without a word, and so do a softmax or a running sum along
that axis of a tensor with further axes. All of them fit whatever the sizes are. Whole numbers
and conditions are added up over requests to lay out a batch: they count where something is divided
by them, and conditions and running sums of whole numbers never. One number for all axes is a scale.
A sort is one way to a quantile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch

from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.shape_env import Operator, expression

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_aten = torch.ops.aten
# On a tensor: for each axis of one row, counted from the last, the requests that it stands for.
_REDUCED = "_shapecheck_reduced"
_REDUCTIONS = frozenset[object](
    {
        _aten.sum, _aten.mean, _aten.prod, _aten.amax, _aten.amin, _aten.max, _aten.min, _aten.any,
        _aten.all, _aten.logsumexp, _aten.argmax, _aten.argmin,
    }
)  # fmt: skip
_ALONG = frozenset[object](
    {
        _aten._softmax, _aten._log_softmax, _aten.softmax, _aten.log_softmax, _aten.cumsum,
        _aten.cumprod,
    }
)  # fmt: skip


class _Row(NamedTuple):
    """One row that stands for so many requests; `whole` when it came of whole numbers."""

    requests: Expression
    whole: bool


Axes = Mapping[int, _Row]


@dataclass(slots=True)
class Requests:
    """Follows the axes of requests through one trace."""

    recorder: Recorder

    def follow(
        self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: object
    ) -> None:
        """Check what `func` spreads or mixes, and mark what it reduced."""
        packet = func.overloadpacket
        axis, keeps = _argument(args, kwargs, 1, "dim"), _argument(args, kwargs, 2, "keepdim")
        if packet in _ALONG:
            self._along(args[0], axis)
        elif packet in _REDUCTIONS:
            reduced = (
                self._reduced(args[0], axis, keeps=keeps is True) if axis is not None else None
            )
            for made in tensors(result) if reduced else ():
                setattr(made, _REDUCED, reduced)
        elif torch.Tag.pointwise in func.tags:
            divides = packet is _aten.div and "rounding_mode" not in kwargs
            self._spread(list(tensors((args, kwargs))), result, divides=divides)

    def _along(self, tensor: torch.Tensor, axis: object) -> None:
        if tensor.dim() > 1 and tensor.dtype.is_floating_point:
            size = self._requests(tensor, axis if isinstance(axis, int) else -1)
            if size is not None:
                self._report("runs along the requests of a batch", size)

    def _reduced(self, tensor: torch.Tensor, given: object, *, keeps: bool) -> Axes:
        rank = tensor.dim()
        given_axes = cast("list[int]", given if isinstance(given, list) else [given])
        axes = {axis % rank - rank for axis in given_axes} if rank else set[int]()
        whole = all(axis in axes or expression(tensor.shape[axis]) == 1 for axis in range(-rank, 0))
        if whole or tensor.dtype is torch.bool:
            return {}
        if not keeps and (axes != {-rank} or not tensor.dtype.is_floating_point):
            return {}  # axes that are gone come back as the first ones
        sizes = ((axis, self._requests(tensor, axis)) for axis in axes)
        whole_numbers = not tensor.dtype.is_floating_point
        return {axis: _Row(size, whole_numbers) for axis, size in sizes if size is not None}

    def _spread(self, operands: list[torch.Tensor], result: object, *, divides: bool) -> None:
        left: dict[int, _Row] = {}
        for axis, row in self._marks(operands):
            spread = any(
                one.dim() >= -axis and expression(one.shape[axis]) == row.requests
                for one in operands
            )
            if not spread:
                left[axis] = row
            elif divides or not row.whole:
                self._report("one row for all requests is spread over the requests", row.requests)
                return
        for made in tensors(result) if left else ():
            setattr(made, _REDUCED, left)

    @staticmethod
    def _marks(operands: list[torch.Tensor]) -> Iterator[tuple[int, _Row]]:
        for one in operands:
            marks: Axes = getattr(one, _REDUCED, {})
            yield from marks.items()

    def _requests(self, tensor: torch.Tensor, axis: int) -> Expression | None:
        """The size of the axis, when requests are counted along it and along no other."""
        if not tensor.dim():
            return None
        size = expression(tensor.shape[axis])
        if [expression(one) for one in tensor.shape].count(size) > 1:
            return None
        names = self.recorder.judge.names
        counted = (names[one] for one in size.free_symbols if one in names)
        return size if any(map(self.recorder.parties.is_batch, counted)) else None

    def _report(self, said: str, size: Expression) -> None:
        operation, judge = self.recorder.operation, self.recorder.judge
        if operation is None:
            return
        names = frozenset(judge.names[one] for one in size.free_symbols if one in judge.names)
        text, origins = self.recorder.describe_operands(operation, names)
        self.recorder.add(
            Meeting(
                code="SHP303",
                text=f"{said} ({judge.text(size)})",
                names=names,
                site=operation.site,
                operation=text,
                origins=origins,
                may=True,
                remedy="reduce each request by itself, or all axes to one number",
            )
        )


def _argument(
    args: Sequence[object], kwargs: Mapping[str, object], place: int, name: str
) -> object:
    return args[place] if len(args) > place else kwargs.get(name)
