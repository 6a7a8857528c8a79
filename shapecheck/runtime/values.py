"""Checks that read data, so they may wait for the device: only at level full."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from shapecheck.dims.model import Dims
from shapecheck.errors import ContractTextError
from shapecheck.runtime.report import Reporter

if TYPE_CHECKING:
    from torch import Tensor

Invariant = Callable[..., object]
_REMEDIES = {
    "ids": "map ids between the vocabularies where they change hands",
    "indices": "hand over positions along this axis; what counts along another is no index here",
}


class Values:
    """The judgements on data that a plan calls; a tensor without data gets none."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def index(
        self,
        site: int,
        tensor: Tensor,
        size: int,
        pad: int | None,
        bound: Mapping[str, object],
        at: tuple[int, ...],
    ) -> None:
        """Ids and indices lie in [0, size) or are `pad`; else ShapeContractError names which.

        SHP305 for ids of a vocabulary, SHP307 for positions along any other axis.
        """
        if capturing() or not readable(tensor) or tensor.numel() == 0:
            return
        whole = _held(tensor)
        if pad is not None and tensor.dtype.is_signed:
            whole = whole[whole != pad]
        if whole.numel() == 0:
            return
        low, high = int(whole.min()), int(whole.max())
        if low >= 0 and high < size:
            return
        place = self._reporter.sites[site]
        spec = place.spec
        assert spec is not None, "the plan names the spec"
        assert spec.indexes is not None, "the plan asks for indices alone"
        wrong = low if low < 0 else high
        found = f"{low} to {high}" if low != high else low
        range_ = f"[0, {spec.indexes}={size})" + ("" if pad is None else f" or are {pad}")
        kind = "indices" if spec.ids_of is None else "ids"
        notes = [f"expected {kind} in {range_}      got {found}"]
        if spec.ids_of is None:
            notes += self._reporter.origins(spec.indexes, bound)
        self._reporter.relation(
            place.path.format(*at),
            "SHP307" if spec.ids_of is None else "SHP305",
            f"{kind} lie in {range_}, got {wrong}",
            [*notes, _REMEDIES[kind]],
            bound,
        )

    def holds(
        self,
        site: int,
        invariant: Invariant,
        value: object,
        bound: Mapping[str, object],
        at: tuple[int, ...],
    ) -> None:
        """An invariant of a carrier is true of `value`."""
        path = self._reporter.sites[site].path.format(*at)
        self._judge(path, invariant, (value, *_dims(invariant, self._reporter.dims)), {}, bound)

    def relates(
        self,
        invariant: Invariant,
        named: Mapping[str, object],
        bound: Mapping[str, object],
        _at: tuple[int, ...],
    ) -> None:
        """An invariant of a contract is true of the arguments and the result it names."""
        offered = {**named, "dims": self._reporter.dims}
        wanted = {name: offered[name] for name in inspect.signature(invariant).parameters}
        self._judge("invariant", invariant, (), wanted, bound)

    def _judge(
        self,
        path: str,
        invariant: Invariant,
        values: tuple[object, ...],
        named: Mapping[str, object],
        bound: Mapping[str, object],
    ) -> None:
        import torch

        if capturing() or not all(map(readable, tensors_in([*values, *named.values()]))):
            return
        verdict = invariant(*values, **named)
        if isinstance(verdict, torch.Tensor):
            verdict = bool(verdict.all())
        if verdict is not True and verdict is not False:
            raise ContractTextError(
                f"SHP101 contract-syntax: invariant {invariant.__qualname__} returned "
                f"{type(verdict).__name__}; return a bool or a bool tensor"
            )
        if not verdict:
            what = (invariant.__doc__ or invariant.__name__).strip().partition("\n")[0]
            self._reporter.relation(
                path,
                "SHP206",
                f"invariant {invariant.__name__} does not hold: {what}",
                [f"invariant {invariant.__qualname__} is false", what],
                bound,
            )


def readable(tensor: Tensor) -> bool:
    """Whether the tensor has data of its own: it is not on meta, fake, or inside vmap or grad."""
    from torch._C._functorch import is_functorch_wrapped_tensor
    from torch._subclasses.fake_tensor import FakeTensor

    wrapped = is_functorch_wrapped_tensor(tensor)
    return not (tensor.is_meta or wrapped or isinstance(tensor, FakeTensor))


def _held(tensor: Tensor) -> Tensor:
    """The values of a tensor of any layout as int64; of a sparse one 0 for all it leaves out.

    torch finds no extremes of sparse tensors, nor of most unsigned dtypes.
    """
    import torch

    if tensor.layout is torch.strided:
        return tensor.long()
    held = tensor.coalesce() if tensor.layout is torch.sparse_coo else tensor
    values = held.values().reshape(-1).long()
    return values if values.numel() == tensor.numel() else torch.cat([values, values.new_zeros(1)])


def tensors_in(values: Iterable[object]) -> Iterator[Tensor]:
    """Every tensor among the values, carriers, lists and tuples opened."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(cast("Iterable[object]", value))
        elif dataclasses.is_dataclass(value):
            yield from tensors_in(
                getattr(value, item.name, None) for item in dataclasses.fields(value)
            )


def capturing() -> bool:
    """Whether a CUDA graph is being captured: reading data would end it, kernels would join it."""
    import torch

    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _dims(invariant: Invariant, dims: Dims | None) -> tuple[Dims | None, ...]:
    return (dims,) if len(inspect.signature(invariant).parameters) > 1 else ()
