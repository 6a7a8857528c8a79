"""`@graph_buffers`: static buffers of a CUDA graph, filled by a copy that is never skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, overload

from shapecheck.config import Level, settings
from shapecheck.dims.model import Dims
from shapecheck.errors import ShapeContractError
from shapecheck.runtime.carrier import adopt, attach, check
from shapecheck.runtime.pairs import Pair, alike, judge_specs, paired, refuse_values, value_at
from shapecheck.runtime.report import Reporter
from shapecheck.runtime.stats import Tally, tally
from shapecheck.runtime.values import capturing, readable
from shapecheck.spec import carrier_of, declare_carrier

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Filling = tuple[Pair, "Tensor | None", "Tensor | None"]


@overload
def graph_buffers(cls: type[T], /) -> type[T]: ...
@overload
def graph_buffers(*, live: type) -> Callable[[type[T]], type[T]]: ...


def graph_buffers(cls: type | None = None, /, *, live: type | None = None) -> object:
    """Mark a dataclass of static buffers, and give it `fill(live)`, `check(dims)` and
    `check_live(live)`.

    `fill` copies a live carrier in; `check` is for capture time, `check_live` for before a replay.
    `live` names the carrier class, whose fields are then paired when the buffers are first checked.
    Raises ContractTextError for a malformed class.
    """
    if cls is None:
        return lambda decorated: _declare(decorated, live, depth=2)  # pyright: ignore
    return _declare(cls, live, depth=2)


def _declare(cls: type, live: type | None, *, depth: int) -> type:
    declare_carrier(cls, depth=depth, static_buffers=True, live=live)
    attach(cls, "check", check_buffers)
    attach(cls, "fill", fill)
    attach(cls, "check_live", check_live)
    adopt(cls)
    return cls


def check_buffers(self: object, dims: Dims | None = None, *, phase: str | None = None) -> None:
    """The buffers are as annotated and pair with their live carrier class: call it at capture.

    Raises ShapeContractError: SHP401 for a field that has no partner or another later axis, rank
    or dtype than it, SHP2xx for a buffer that is not as annotated.
    """
    cls = type(self)
    live = carrier_of(cls).live
    if live is not None:
        reporter = reporter_of(cls, "check", Tally(cls.__name__))
        for pair in paired(cls, live):
            judge_specs(reporter, pair)
    check(self, dims, phase=phase)


def fill(self: object, live: object) -> None:
    """The first rows of every buffer hold the live tensors; rows beyond them are untouched.

    Unless the level is off every pair is judged before the first copy: capacity at least the live
    rows, later axes, rank and dtype equal, a partner on both sides; ShapeContractError (SHP401)
    otherwise, and at level warn a record and the copies all the same. A tensor without a partner
    raises at every level: there is no copy to make, and none is skipped.
    """
    cls = type(self)
    filling = pairs_of(self, live)
    level = settings().level
    if level is not Level.OFF:
        counts = tally(cls.__module__, f"{cls.__qualname__}.fill")
        counts.calls[0] += 1
        reporter = reporter_of(cls, "fill", counts)
        try:
            for pair, buffer, value in filling:
                if not alike(buffer, value):
                    refuse_values(reporter, pair, buffer, value)
        except ShapeContractError as error:
            if level is not Level.WARN:
                raise
            reporter.log(error)
    copy_in(cls, filling)


def check_live(self: object, live: object) -> None:
    """The first rows of every buffer are those of `live`: call it when a replay is about to start.

    At level full only, because it reads data; ShapeContractError (SHP206) names a buffer whose
    live rows were overwritten after `fill`, by padding or by another owner of its memory.
    """
    if settings().level is not Level.FULL or capturing():
        return
    cls = type(self)
    for pair, buffer, value in pairs_of(self, live):
        if buffer is None or value is None or not (readable(buffer) and readable(value)):
            continue
        kept = buffer[: value.shape[0]] if value.ndim else buffer
        if bool(((kept == value) | ((kept != kept) & (value != value))).all()):
            continue
        name = ".".join(pair.names)
        reporter_of(cls, "check_live", Tally(cls.__name__)).relation(
            f"field {name}",
            "SHP206",
            "the live rows are no longer those that were filled in",
            [
                f"{name} was written after fill, in rows that are live",
                "pad from the first row that is not live, and share no memory between buffers",
            ],
            {},
        )


def pairs_of(buffers: object, live: object) -> list[Filling]:
    """Every tensor of either side with its partner."""
    return [
        (pair, value_at(buffers, pair.names), value_at(live, pair.names))
        for pair in paired(type(buffers), type(live))
    ]


def copy_in(cls: type, filling: Sequence[Filling]) -> None:
    """Copy every pair; a tensor without a partner raises ShapeContractError (SHP401)."""
    for pair, buffer, value in filling:
        if buffer is not None and value is not None:
            (buffer[: value.shape[0]] if value.ndim else buffer).copy_(value)
        elif buffer is not value:
            refuse_values(reporter_of(cls, "fill", Tally(cls.__name__)), pair, buffer, value)


def reporter_of(cls: type, method: str, counts: Tally) -> Reporter:
    """Turns what is wrong with buffers of this class into errors."""
    where = f"{cls.__qualname__.rpartition('<locals>.')[2]}.{method}"
    return Reporter(where=where, phase=None, dims=None, tally=counts)
