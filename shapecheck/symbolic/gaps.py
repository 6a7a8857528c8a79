"""Sizes that fake kernels leave unchecked: indexed writes, gather and scatter.

Each check asks the same question that the real kernel would, so that it is answered and recorded
like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.shape_env import Operator, expression, require

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder


def check_gaps(
    func: Operator,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    recorder: Recorder,
) -> None:
    """Ask what the fake kernel of `func` does not."""
    check = _CHECKS.get(func.overloadpacket)
    if check is not None and not kwargs:
        check(args)
    if check is _scatter and len(args) > 3 and isinstance(args[3], torch.Tensor):
        _check_uncovered(args[2], args[3], recorder)


def _index_put(args: tuple[Any, ...]) -> None:
    into, indices, values = args[0], args[1], args[2]
    if any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices):
        return  # the number of rows depends on data
    written = into[tuple(slice(None) if index is None else index for index in indices)]
    _broadcasts(values, written.shape)


def _gather(args: tuple[Any, ...]) -> None:
    source, dim, index = args[0], args[1], args[2]
    _fits(index, source, dim)


def _scatter(args: tuple[Any, ...]) -> None:
    into, dim, index = args[0], args[1], args[2]
    _fits(index, into, dim)
    if len(args) > 3 and isinstance(args[3], torch.Tensor) and args[3].dim():
        _fits(index, args[3], None)


def _check_uncovered(index: torch.Tensor, values: torch.Tensor, recorder: Recorder) -> None:
    """An index is not broadcast: where it is shorter, the rest of the values goes nowhere."""
    operation = recorder.operation
    if operation is None or index.dim() != values.dim():
        return
    for covered, given in zip(index.shape, values.shape, strict=True):
        short, whole = expression(covered), expression(given)
        if short == 1 and whole != 1:
            recorder.add(
                Meeting(
                    code="SHP303",
                    text=f"an index of 1 row covers {recorder.judge.text(whole)} rows of values, "
                    "and is not broadcast",
                    names=recorder.names(values),
                    site=operation.site,
                    operation=operation.name,
                    origins=recorder.origins([index, values]),
                    may=True,
                )
            )


def _fits(index: torch.Tensor, other: torch.Tensor, free: int | None) -> None:
    if index.dim() != other.dim():
        return  # the kernel refuses another rank by itself
    for axis, (small, large) in enumerate(zip(index.shape, other.shape, strict=True)):
        if free is None or axis != free % index.dim():
            _require_at_most(small, large)


def _broadcasts(values: torch.Tensor, shape: torch.Size) -> None:
    for have, want in zip(reversed(values.shape), reversed(shape), strict=False):
        if have == 1:
            continue
        require(have == want, f"values {list(values.shape)} into {list(shape)}")


def _require_at_most(small: int, large: int) -> None:
    require(small <= large, f"index of {small} rows over {large}")


_aten = torch.ops.aten
_CHECKS: dict[object, Callable[[tuple[Any, ...]], None]] = {
    _aten.index_put_: _index_put,
    _aten.index_put: _index_put,
    _aten._index_put_impl_: _index_put,
    _aten.gather: _gather,
    _aten.scatter: _scatter,
    _aten.scatter_: _scatter,
    _aten.scatter_add: _scatter,
    _aten.scatter_add_: _scatter,
}
