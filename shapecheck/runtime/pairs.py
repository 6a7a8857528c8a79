"""Pairs the tensors of graph buffers with those of the carrier they are filled from, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from shapecheck.runtime.report import Reporter
from shapecheck.runtime.tensors import Facts, class_name, facts_of
from shapecheck.spec import (
    CarrierSpec,
    HintSpec,
    OptionalSpec,
    PhasedSpec,
    Spec,
    TensorSpec,
    carrier_of,
)
from shapecheck.spec.hints import refusal

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One field on both sides: its alternatives, none where that side declares no such tensor."""

    path: str
    names: tuple[str, ...]
    buffer: tuple[TensorSpec, ...]
    live: tuple[TensorSpec, ...]


@lru_cache(maxsize=64)
def paired(buffers: type, live: type) -> tuple[Pair, ...]:
    """Every tensor field of either side, by path; ContractTextError for one that is a list."""
    left, right = dict(_fields(buffers)), dict(_fields(live))
    return tuple(
        Pair(
            path=path,
            names=tuple(path.split(".")),
            buffer=left.get(path, ()),
            live=right.get(path, ()),
        )
        for path in dict.fromkeys([*left, *right])
    )


def alike(buffer: Tensor | None, live: Tensor | None) -> bool:
    """Whether both are None, or the live tensor can be copied into the first rows of the buffer."""
    if buffer is None or live is None:
        return buffer is live
    try:
        room, size = buffer.shape, live.shape
    except AttributeError:  # no tensor: cheaper to notice than to ask of every pair
        return False
    return (
        buffer.dtype is live.dtype
        and room[1:] == size[1:]
        and len(room) == len(size)
        and (not size or room[0] >= size[0])
    )


def refuse_values(
    reporter: Reporter,
    pair: Pair,
    buffer: object,
    live: object,
    facts: Callable[[Tensor], Facts] = facts_of,
) -> None:
    """Raise ShapeContractError (SHP401) that says how two values are not alike, if they are not.

    `facts` reads a tensor.
    """
    if not (hasattr(buffer, "dtype") and hasattr(live, "dtype")):
        here, there = class_name(buffer), class_name(live)
        _differ(
            reporter,
            pair,
            f"the buffer holds {here}, the live carrier {there}",
            [f"buffer {here}      live {there}"],
            "a field without a partner would keep the values of an earlier replay",
        )
    held, given = facts(cast("Tensor", buffer)), facts(cast("Tensor", live))
    notes = [f"buffer {held}      live {given}"]
    if len(held.shape) != len(given.shape) or held.dtype != given.dtype:
        what = "rank" if len(held.shape) != len(given.shape) else "dtype"
        _differ(
            reporter,
            pair,
            f"{what} differs: buffer {held}, live {given}",
            notes,
            f"allocate the buffer with the {what} of the live carrier",
        )
    for axis, (room, size) in enumerate(zip(held.shape, given.shape, strict=True)):
        if axis == 0 and room < size:
            _differ(
                reporter,
                pair,
                f"capacity {room} is below the {size} live rows",
                [*notes, f"dim 0: room for {room} rows, {size} are live"],
                "choose a larger bucket, or capture with more rows",
            )
        if axis > 0 and room != size:
            _differ(
                reporter,
                pair,
                f"dim {axis} is {room} in the buffer{_named(pair.buffer, axis)}, "
                f"{size} in the live carrier{_named(pair.live, axis)}",
                [
                    *notes,
                    f"dim {axis}: the buffer has {room}{_named(pair.buffer, axis)}",
                    f"       the live carrier has {size}{_named(pair.live, axis)}",
                ],
                "size the buffer from the same name of Dims as the live carrier",
            )


def judge_specs(reporter: Reporter, pair: Pair) -> None:
    """The declared later axes, rank and dtypes of both sides agree; raises SHP401 otherwise."""
    if not pair.buffer or not pair.live:
        side = "the live carrier" if pair.buffer else "the buffers"
        _differ(
            reporter,
            pair,
            f"{side} has no field {pair.path}",
            [f"{side} has no such field; the other says {(pair.buffer + pair.live)[0]}"],
            "declare the field on both sides, or on neither",
        )
    for buffer in pair.buffer:
        if any(_agree(buffer, live) for live in pair.live):
            return
    _differ(
        reporter,
        pair,
        f"declared {pair.buffer[0]}, the live carrier {pair.live[0]}",
        [f"buffer {pair.buffer[0]}      live {' or '.join(map(str, pair.live))}"],
        "axis 0 may have more rows; every later axis, the rank and the dtype are equal",
    )


def value_at(carrier: object, names: tuple[str, ...]) -> Tensor | None:
    """The tensor of a field below nested carriers, any of which may be None."""
    for name in names:
        carrier = getattr(carrier, name, None)
    return cast("Tensor | None", carrier)


def _agree(buffer: TensorSpec, live: TensorSpec) -> bool:
    return (
        buffer.shape.axes[1:] == live.shape.axes[1:]
        and len(buffer.shape.axes) == len(live.shape.axes)
        and (buffer.dtypes, buffer.dtype_of) == (live.dtypes, live.dtype_of)
    )


def _named(specs: tuple[TensorSpec, ...], axis: int) -> str:
    names = dict.fromkeys(
        str(each.shape.axes[axis]) for each in specs if len(each.shape.axes) > axis
    )
    return f" ({' or '.join(names)})" if names else ""


def _differ(reporter: Reporter, pair: Pair, summary: str, notes: list[str], last: str) -> None:
    reporter.relation(f"field {pair.path}", "SHP401", summary, [*notes, last], _NOTHING)


_NOTHING: Mapping[str, object] = {}


def _fields(cls: type, prefix: str = "") -> Iterator[tuple[str, tuple[TensorSpec, ...]]]:
    for item in carrier_of(cls).fields:
        yield from _tensors(item.spec, f"{prefix}{item.name}", cls)


def _tensors(spec: Spec, path: str, cls: type) -> Iterator[tuple[str, tuple[TensorSpec, ...]]]:
    match spec:
        case TensorSpec():
            yield path, (spec,)
        case OptionalSpec(item=item):
            yield from _tensors(item, path, cls)
        case PhasedSpec(alternatives=alternatives):
            found = [each for _, item in alternatives for _, each in _tensors(item, path, cls)]
            yield path, tuple(each for group in found for each in group)
        case CarrierSpec(cls=inner):
            yield from _fields(inner, f"{path}.")
        case HintSpec():
            return
        case _:
            raise refusal(
                f"{cls.__name__}.{path}",
                "a list, tuple or union has no static buffer to pair with",
                "give each tensor a field of its own",
            )
