"""What an annotation says, read from source: the places of its axis names, and its marks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shapecheck.diagnostics.model import Span
from shapecheck.dims.places import Places
from shapecheck.markers import NO_DTYPE_OF_COUNTS, Counted, DtypeOf

# Kinds of jaxtyping that admit no integers; their names go on with a number of bits.
_NO_INTEGERS = ("Float", "BFloat", "Bool", "Complex", "Inexact", "Key")


@dataclass(frozen=True, slots=True)
class Place:
    """One occurrence of an axis name: the path that messages show, and the shape string."""

    path: str
    span: Span


@dataclass(frozen=True, slots=True)
class Item:
    """What marks say of the one tensor that an annotation is, or of each in its list.

    `kind` is jaxtyping's name for its dtypes.
    """

    kind: str
    dtype_of: str | None = None
    counted: Counted | None = None

    def contradiction(self, mark: DtypeOf | Counted) -> str | None:
        """Why run time refuses one more mark, and what to do; None where it agrees."""
        said = mark if isinstance(mark, Counted) else self.counted
        has_dtype = isinstance(mark, DtypeOf) or self.dtype_of is not None
        if isinstance(mark, DtypeOf) and self.dtype_of not in (None, mark.model):
            return "dtype(...) says both models; keep one mark"
        if said is not None and has_dtype:
            return f"{NO_DTYPE_OF_COUNTS.format(said)}; keep the one mark that is true"
        if isinstance(mark, DtypeOf):
            return None
        if self.kind.startswith(_NO_INTEGERS):
            return f"{mark} marks whole numbers; write Int64[Tensor, ...] or Int32"
        wrong = self.counted.contradiction(mark) if self.counted is not None else None
        return None if wrong is None else f"{wrong}; keep the one mark that is true"

    def marked(self, mark: DtypeOf | Counted) -> Item:
        """What one more mark makes of it."""
        if isinstance(mark, DtypeOf):
            return replace(self, dtype_of=mark.model)
        return replace(self, counted=mark)


@dataclass(slots=True)
class Names:
    """The places of each axis name in an annotation, and how many tensors it has."""

    places: Places[Place] = field(default_factory=Places[Place])
    tensors: int = 0
    is_carrier: bool = False
    phase: str | None = None
    item: Item | None = None

    def add(self, other: Names, times: int = 1) -> None:
        """Count another annotation too."""
        self.places.add(other.places, times)
        self.tensors += other.tensors
