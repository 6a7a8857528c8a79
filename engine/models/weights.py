"""Axis and WeightSlot: what a checkpoint must hold for a model, each size with its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from engine.models.loader.base import Checkpoint

from engine.errors import CheckpointError, WidthError


@dataclass(frozen=True, slots=True)
class Axis:
    """One named size, for example ("draft_heads*draft_head_dim", 256)."""

    name: str
    size: int

    def __str__(self) -> str:
        return f"{self.name}={self.size}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSlot:
    """A tensor the model needs: its name in the checkpoint, its axes, and where it is copied."""

    name: str
    axes: tuple[Axis, ...]
    destination: Tensor


def fill(
    slots: Iterable[WeightSlot],
    checkpoint: Checkpoint,
    *,
    source: str,
    redundant: frozenset[str] = frozenset(),
) -> None:
    """Every slot holds its tensor of `checkpoint` and none is left over.

    Raises CheckpointError naming tensor, file and dimension; `source` is the config that
    promised the sizes, `redundant` what may be there and is not needed.
    """
    wanted = list(slots)
    present = set(checkpoint.names())
    missing = [slot for slot in wanted if slot.name not in present]
    if missing:
        raise CheckpointError(_missing_text(missing, checkpoint, source))
    known = {slot.name for slot in wanted} | set(checkpoint.ignorable()) | redundant
    extra = sorted(present - known)
    if extra:
        raise CheckpointError(
            f"{checkpoint.where(extra[0])}: {_and_more(extra)} not part of the model "
            f"that {source} describes; check that config and weights belong together"
        )
    # Every shape is checked before the first copy: a half-filled model is never left behind.
    for slot in wanted:
        _check_shape(slot, checkpoint, source)
    for slot in wanted:
        slot.destination.copy_(_of_kind(slot, checkpoint))


def _of_kind(slot: WeightSlot, checkpoint: Checkpoint) -> Tensor:
    """The slot's tensor; CheckpointError for codes of a quantised weight, which are no numbers."""
    tensor = checkpoint.tensor(slot.name)
    if tensor.is_floating_point() != slot.destination.is_floating_point():
        raise CheckpointError(
            f"{checkpoint.where(slot.name)}: {slot.name} holds {tensor.dtype}, expected numbers "
            f"like {slot.destination.dtype}; use a checkpoint that is not quantised"
        )
    return tensor


def _check_shape(slot: WeightSlot, checkpoint: Checkpoint, source: str) -> None:
    shape = checkpoint.shape(slot.name)
    if shape == tuple(axis.size for axis in slot.axes):
        return
    wanted = ", ".join(str(axis) for axis in slot.axes)
    text = (
        f"{checkpoint.where(slot.name)}: {slot.name} has shape {list(shape)}, "
        f"expected [{wanted}] from {source}"
    )
    for number, (axis, size) in enumerate(zip(slot.axes, shape, strict=False)):
        if axis.size != size:
            text += f"; dim {number}: {axis.name} is {axis.size}, the file has {size}"
    raise WidthError.of(
        text + "; use the config that was saved with these weights",
        expected=[axis.size for axis in slot.axes],
        found=list(shape),
    )


def _missing_text(missing: list[WeightSlot], checkpoint: Checkpoint, source: str) -> str:
    first = missing[0]
    wanted = ", ".join(str(axis) for axis in first.axes)
    return (
        f"{checkpoint.source}: {_and_more([slot.name for slot in missing])} missing "
        f"({first.name} is [{wanted}] in {source}); "
        "download the checkpoint again or use the config saved with it"
    )


def _and_more(names: list[str]) -> str:
    rest = len(names) - 1
    return f"{names[0]} is" if not rest else f"{names[0]} and {rest} more tensors are"


def under(prefix: str, slots: Iterable[WeightSlot]) -> Iterator[WeightSlot]:
    """The same slots with `prefix.` before their names."""
    for slot in slots:
        yield WeightSlot(name=f"{prefix}.{slot.name}", axes=slot.axes, destination=slot.destination)
