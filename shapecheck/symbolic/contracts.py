"""Contracts, carriers and graph buffers while a trace runs: judged on sizes instead of numbers."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from shapecheck.diagnostics import Note, Span
from shapecheck.dims.model import Dims
from shapecheck.dims.parse import Axis
from shapecheck.errors import ShapeContractError
from shapecheck.runtime.buffers import Filling, copy_in, fill, pairs_of, reporter_of
from shapecheck.runtime.carrier import check
from shapecheck.runtime.generators import drive, drive_async
from shapecheck.runtime.pairs import refuse_values
from shapecheck.runtime.single import check_shape, shape_spec
from shapecheck.runtime.stats import Tally
from shapecheck.runtime.table import bare_functions
from shapecheck.spec import CarrierSpec, ContractSpec, FunctionContract, Spec, watching
from shapecheck.symbolic.attribution import is_traced_file, shown_path
from shapecheck.symbolic.binding import Binding, Held
from shapecheck.symbolic.boundary import Boundary
from shapecheck.symbolic.bounds import Bounds
from shapecheck.symbolic.domains import Domains
from shapecheck.symbolic.indices import Indices
from shapecheck.symbolic.recorder import Recorder
from shapecheck.symbolic.sizes import Size
from shapecheck.symbolic.standins import Function, Standins


@dataclass(slots=True, kw_only=True)
class Contracts:
    """Holds every contract that is crossed in one trace to the sizes of that trace."""

    dims: Dims
    recorder: Recorder
    domains: Domains
    indices: Indices
    bounds: Bounds
    _standins: Standins = field(default_factory=Standins)

    @contextmanager
    def held(self) -> Generator[None]:
        """The block in which contracts are judged, whatever the level; none of them raises."""
        try:
            self._standins.put(check, lambda _: self._check)
            self._standins.put(fill, lambda _: self._fill)
            self._standins.put(check_shape, lambda _: self._check_shape)
            with bare_functions(), watching(self._hold):
                yield
        finally:
            self._standins.restore()

    def _hold(self, contract: FunctionContract) -> None:
        self._standins.put(contract.function, lambda original: self._crossing(contract, original))

    def _crossing(self, contract: FunctionContract, original: Function) -> Function:
        """What is called in place of the function of a contract."""
        place = _place(contract, original)

        def enter(args: tuple[object, ...], kwargs: Mapping[str, object]) -> Boundary:
            given = contract.signature.bind(*args, **kwargs)
            given.apply_defaults()
            boundary = self._boundary(contract, given.arguments, place)
            boundary.check(
                [
                    Held(given.arguments[one.name], f"argument {one.name}", one.spec)
                    for one in contract.spec.parameters
                ]
            )
            return boundary

        def crossed(*args: object, **kwargs: object) -> object:
            boundary = enter(args, kwargs)
            return _leave(boundary, contract.spec, original(*args, **kwargs))

        async def awaited(*args: object, **kwargs: object) -> object:
            boundary = enter(args, kwargs)
            result = await cast("Awaitable[object]", original(*args, **kwargs))
            return _leave(boundary, contract.spec, result)

        return awaited if inspect.iscoroutinefunction(original) else crossed

    def _boundary(
        self, contract: FunctionContract, given: Mapping[str, object], place: Note | None
    ) -> Boundary:
        parameter = contract.spec.dims_parameter
        dims = given[parameter] if parameter is not None else None
        if dims is None and contract.receiver is not None:
            dims = getattr(given[contract.receiver], "dims", None)
        return self._open(dims, contract.where, contract.phase, place)

    def _open(
        self, dims: object, where: str, phase: str | None, place: Note | None = None
    ) -> Boundary:
        known = isinstance(dims, Dims)
        return Boundary(
            binding=Binding(
                where=where,
                phase=phase,
                dims=dims if known and dims.symbolic else self.dims,
                has_dims=known,
                recorder=self.recorder,
            ),
            recorder=self.recorder,
            domains=self.domains,
            indices=self.indices,
            bounds=self.bounds,
            place=place,
        )

    def _check(
        self, carrier: object, dims: Dims | None = None, *, phase: str | None = None
    ) -> None:
        """What `carrier.check(dims)` does in a trace."""
        boundary = self._open(dims, f"{_short(type(carrier))}.check", phase)
        boundary.check([Held(carrier, "carrier", CarrierSpec(cls=type(carrier)))])

    def _check_shape(self, tensor: object, shape: str, dims: Dims, *, name: str) -> None:
        """What `check_shape` does in a trace."""
        boundary = self._open(dims, "check_shape", None)
        boundary.check([Held(tensor, name, shape_spec(shape))])

    def _fill(self, buffers: object, live: object) -> None:
        """What `buffers.fill(live)` does in a trace: every pair is judged, then copied.

        So are the buffers among themselves, which run time leaves to their `check`: a graph reads
        as many rows of each.
        """
        boundary = self._open(self.dims, f"{_short(type(buffers))}.fill", None)
        filling = pairs_of(buffers, live)
        for one in filling:
            _judge_pair(boundary, type(buffers), one)
        _judge_rows(boundary, type(buffers), filling)
        copy_in(type(buffers), filling)


def _judge_pair(boundary: Boundary, cls: type, filling: Filling) -> None:
    pair, buffer, value = filling
    if buffer is None or value is None:
        return  # copy_in judges it, at every level
    try:
        reporter = reporter_of(cls, "fill", Tally(cls.__name__))
        refuse_values(reporter, pair, buffer, value, partial(boundary.facts, named=True))
    except ShapeContractError as error:
        boundary.report(error.diagnostic, value, boundary.apart(buffer, value))


def _judge_rows(boundary: Boundary, cls: type, filling: list[Filling]) -> None:
    """Buffers whose first axes have one name have as many rows."""
    seen: dict[Axis, tuple[str, int]] = {}
    for pair, buffer, _ in filling:
        axes = {one.shape.axes[:1] for one in pair.buffer}
        if buffer is None or not buffer.ndim or len(axes) != 1 or () in axes:
            continue
        ((axis,),) = axes
        rows = boundary.facts(buffer, named=True).shape[0]
        other, size = seen.setdefault(axis, (pair.path, rows))
        if size == rows:
            continue
        names = cast("Size", size).names() | cast("Size", rows).names()
        try:
            reporter_of(cls, "fill", Tally(cls.__name__)).relation(
                f"field {pair.path}",
                "SHP401",
                f"{axis} is {rows} here, and {size} in {other}",
                [
                    f"a graph reads as many rows of {pair.path} as of {other}",
                    f"allocate every buffer with the rows of one {axis}",
                ],
                {},
            )
        except ShapeContractError as error:
            boundary.report(error.diagnostic, buffer, names)


def _leave(boundary: Boundary, spec: ContractSpec, result: object) -> object:
    if inspect.isgenerator(result):
        items = cast("Generator[object, object, object]", result)
        yields = _later(boundary, "yield", spec.yields)
        return drive(items, yields, _later(boundary, "return", spec.returns))
    if inspect.isasyncgen(result):
        stream = cast("AsyncGenerator[object, object]", result)
        return drive_async(stream, _later(boundary, "yield", spec.yields), None)
    if spec.returns is not None:
        boundary.check([Held(result, "return", spec.returns)])
    return result


def _later(boundary: Boundary, path: str, spec: Spec | None) -> Callable[[object], None] | None:
    if spec is None:
        return None
    return lambda value: boundary.check([Held(value, path, spec)])


def _place(contract: FunctionContract, original: Function) -> Note | None:
    """The line of the contract itself, where it is in a file that may be shown."""
    code = original.__code__
    if not is_traced_file(code.co_filename):
        return None
    span = Span(path=shown_path(code.co_filename), line=code.co_firstlineno)
    return Note(label="contract", message=contract.where, span=span)


def _short(cls: type) -> str:
    return cls.__qualname__.rpartition("<locals>.")[2]
