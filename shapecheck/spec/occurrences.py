"""SHP103: how often a name occurs in the expanded contract; once means that it checks nothing."""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.dims.vocabulary import lookup
from shapecheck.errors import ContractTextError
from shapecheck.spec.carrier import carrier_of
from shapecheck.spec.hints import refusal
from shapecheck.spec.model import (
    CarrierSpec,
    ContractSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
)


def refuse_loose(contract: ContractSpec, *, names_bind: bool) -> None:
    """Raise SHP103 when a name that binds per call occurs once, or nothing is a tensor.

    `names_bind` says that no Dims is in reach, so that the names of Dims bind per call as well.
    """
    places: dict[str, list[str]] = {}
    tensors = 0
    for path, spec in roots(contract):
        for place, tensor, times in tensors_of(spec, path, contract.phase):
            tensors += 1
            for axis in tensor.shape.axes:
                for name in axis.symbols():
                    places.setdefault(name, []).extend([place] * times)
    if not tensors:
        raise ContractTextError(
            f"SHP103 loose-dim: {contract.where} names no tensor and no carrier, so its contract "
            "checks nothing; annotate what crosses, or remove @contract"
        )
    for name, found in places.items():
        declared = lookup(name)
        per_call = declared is not None and declared.per_call
        if len(found) == 1 and (per_call or names_bind):
            why = "" if per_call else " and no Dims is in reach (`self.dims` or a Dims parameter)"
            raise ContractTextError(
                f"SHP103 loose-dim: {contract.where}: {name!r} occurs only in {found[0]}{why}, so "
                "it would bind to anything; use it in a second tensor, or write the size it has"
            )


def roots(contract: ContractSpec) -> Iterator[tuple[str, Spec]]:
    """Every spec of a contract with its path: `argument batch`, `yield`, `return`."""
    for parameter in contract.parameters:
        yield f"argument {parameter.name}", parameter.spec
    if contract.yields is not None:
        yield "yield", contract.yields
    if contract.returns is not None:
        yield "return", contract.returns


def tensors_of(spec: Spec, path: str, phase: str | None) -> Iterator[tuple[str, TensorSpec, int]]:
    """Every tensor of a spec with its path, carriers opened, and how often it counts.

    The items of a list share their names, so one of them counts twice.
    """
    match spec:
        case TensorSpec():
            yield path, spec, 1
        case OptionalSpec(item=item):
            yield from tensors_of(item, path, phase)
        case PhasedSpec():
            yield from tensors_of(alternative(spec, path, phase), path, phase)
        case CarrierSpec(cls=cls):
            for item in carrier_of(cls).fields:
                yield from tensors_of(item.spec, f"{path}.{item.name}", phase)
        case UnionSpec(items=items):
            for item in items:
                yield from tensors_of(item, path, phase)
        case SequenceSpec(item=item):
            for place, tensor, times in tensors_of(item, f"{path}[]", phase):
                yield place, tensor, 2 * times
        case TupleSpec(items=items):
            for position, item in enumerate(items):
                yield from tensors_of(item, f"{path}[{position}]", phase)
        case _:
            return


def alternative(spec: PhasedSpec, path: str, phase: str | None) -> Spec:
    """The alternative of `phase`; raises SHP101 when the contract names none of them."""
    found = spec.in_phase(phase)
    if found is None:
        known = ", ".join(spec.phases())
        said = f"phase {phase!r} has no alternative" if phase else "the contract names no phase"
        raise refusal(
            path, f"the field differs per phase ({known}) and {said}", "write phase= of these"
        )
    return found
