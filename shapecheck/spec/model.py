"""What a contract says, as data: the one model that run time, trace and testing read.

A spec is read from hints once and never changes; it knows names, not numbers, and needs no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from shapecheck.dims.parse import Axis, ShapeText
from shapecheck.markers import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One tensor: class, shape, and the dtypes or the model whose dtype it has.

    `dtypes` are torch dtype names; None admits any (jaxtyping's `Shaped`). `indexes` is the axis
    along which the values are positions, `pad` the one that is none; ids are positions along the
    vocabulary of the model `ids_of`.
    """

    cls: type
    shape: ShapeText
    kind: str
    dtypes: tuple[str, ...] | None
    dtype_of: Model | None = None
    ids_of: Model | None = None
    indexes: Axis | None = None
    pad: int | None = None

    def __str__(self) -> str:
        dtype = f"{self.dtype_of} dtype" if self.dtype_of else self.kind
        return f"{dtype}[{self.shape}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierSpec:
    """A `@carrier` class; its fields are read by `carrier_of(cls).fields`, when it is complete."""

    cls: type


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalSpec:
    """The item, or None."""

    item: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasedSpec:
    """One alternative per phase; a phase that has none is refused when a contract names it."""

    alternatives: tuple[tuple[str, Spec], ...]

    def in_phase(self, phase: str | None) -> Spec | None:
        """The alternative of `phase`, or None."""
        return dict(self.alternatives).get(phase) if phase else None

    def phases(self) -> tuple[str, ...]:
        """Every phase that has an alternative."""
        return tuple(name for name, _ in self.alternatives)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionSpec:
    """Exactly one of several carrier classes."""

    items: tuple[CarrierSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceSpec:
    """Any number of items in a list, a tuple or another Sequence."""

    container: type
    item: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleSpec:
    """A tuple with one spec per position."""

    items: tuple[Spec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HintSpec:
    """A hint without tensors, left to beartype."""

    hint: object


Spec: TypeAlias = (
    TensorSpec
    | CarrierSpec
    | OptionalSpec
    | PhasedSpec
    | UnionSpec
    | SequenceSpec
    | TupleSpec
    | HintSpec
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """One field of a carrier."""

    name: str
    spec: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSpec:
    """One annotated parameter of a contract; `*args` arrive as one tuple."""

    name: str
    spec: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractSpec:
    """A whole contract: what goes in, what comes out, what a generator yields."""

    where: str
    phase: str | None
    parameters: tuple[ParameterSpec, ...]
    returns: Spec | None
    yields: Spec | None = None
    dims_parameter: str | None = None
