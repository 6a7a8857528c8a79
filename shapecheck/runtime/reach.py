"""What is known where a tensor crosses: names, their numbers, and where those come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shapecheck.dims.model import Dims
from shapecheck.dims.parse import Axis
from shapecheck.dims.vocabulary import Owner, lookup
from shapecheck.runtime.tensors import dtype_names
from shapecheck.spec.model import TensorSpec

MODELS = (Owner.TARGET, Owner.DRAFT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The boundary, its Dims, and the names bound so far.

    `bound` holds per-call numbers, `binders` the fields that may have bound each.
    """

    where: str
    phase: str | None
    dims: Dims | None
    bound: Mapping[str, int]
    binders: Mapping[str, Sequence[str]]

    def number(self, name: str) -> int | None:
        """The number of a name, bound or from Dims."""
        found = self.bound.get(name)
        return self.dims.get(name) if found is None and self.dims is not None else found

    def value(self, axis: Axis) -> int | None:
        """The number of an axis, or None while one of its names has none."""
        numbers = {name: self.number(name) for name in axis.symbols()}
        known = {name: number for name, number in numbers.items() if number is not None}
        return axis.evaluate(known.__getitem__) if len(known) == len(numbers) else None

    def origin(self, name: str) -> str:
        """Where the number of a name comes from."""
        if name in self.binders and name in self.bound:
            return f"bound by {' or '.join(self.binders[name])}"
        if self.dims is not None and name in self.dims:
            return self.dims.origin(name)
        return "not bound yet"

    def others(self, number: int, axis: Axis) -> list[str]:
        """Other names that have this number, those of the two models first when one is wanted."""
        own = axis.as_symbol()
        found = [name for name in dict.fromkeys(self.same(number)) if name != own]
        models = [name for name in found if owner_of(name) in MODELS]
        wants_model = any(owner_of(name) in MODELS for name in axis.symbols())
        return (models if wants_model and models else found)[:3]

    def same(self, number: int) -> list[str]:
        """Every name that has this number."""
        named = self.dims.same_number(number) if self.dims is not None else []
        return named + [name for name, value in self.bound.items() if value == number]


def owner_of(name: str) -> Owner | None:
    """Whose size a name is."""
    declared = lookup(name)
    return declared.owner if declared else None


def axis_text(reach: Reach, axis: Axis) -> str:
    """`tokens=12`, `target_hidden=4096`, `4`, or the bare name while it has no number."""
    if axis.as_int() is not None:
        return str(axis)
    number = reach.value(axis)
    return str(axis) if number is None else f"{axis}={number}"


def spec_text(reach: Reach, spec: TensorSpec) -> str:
    """`bfloat16[tokens=12, target_hidden=4096]`."""
    allowed = dtype_names(spec, reach.dims)
    dtype = allowed[0] if allowed is not None and len(allowed) == 1 else spec.kind
    return f"{dtype}[{', '.join(axis_text(reach, axis) for axis in spec.shape.axes)}]"
