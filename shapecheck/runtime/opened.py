"""The values that generated code holds, and the parts of them that one block checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from shapecheck.spec import OptionalSpec, PhasedSpec, Spec, TensorSpec
from shapecheck.spec.carrier import CarrierContract

Alternatives = tuple[tuple[str, TensorSpec], ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A value that generated code holds: its expression, its path, what it should be."""

    code: str
    path: str
    spec: Spec
    alternatives: Alternatives = ()


@dataclass(slots=True)
class Opened:
    """The parts of the values of one block, by the order in which they are checked."""

    tensors: list[Value] = field(default_factory=list[Value])
    later: list[Value] = field(default_factory=list[Value])
    hints: list[Value] = field(default_factory=list[Value])
    carriers: list[tuple[Value, CarrierContract]] = field(
        default_factory=list["tuple[Value, CarrierContract]"]
    )


def as_tensor(spec: Spec) -> TensorSpec:
    """The spec, which is known to be a tensor's."""
    assert isinstance(spec, TensorSpec)
    return spec


def tensor_in(spec: Spec, phase: str | None = None) -> TensorSpec | None:
    """The tensor a spec is in this phase, None left aside; None when it is something else."""
    match spec:
        case TensorSpec():
            return spec
        case OptionalSpec(item=item):
            return tensor_in(item, phase)
        case PhasedSpec():
            chosen = spec.in_phase(phase)
            return None if chosen is None else tensor_in(chosen, phase)
        case _:
            return None
