"""SHP103: how often a name occurs in the expanded contract; once means that it checks nothing."""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.dims.places import Places, empty, least, loose
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
    found = list(roots(contract))
    if not any(True for path, spec in found for _ in tensors_of(spec, path, contract.phase)):
        raise ContractTextError(f"SHP103 loose-dim: {empty(contract.where)}")
    arguments, results = Places[str](), list[Places[str]]()
    for path, spec in found:
        places = _places(spec, path, contract.phase)
        if path.startswith("argument "):
            arguments.add(places)
        else:
            results.append(places)
    for one in loose(arguments, results):
        declared = lookup(one.name)
        per_call = declared is not None and declared.per_call
        fault = one.fault(one.place, per_call=per_call, binds=names_bind)
        if fault is not None:
            raise ContractTextError(f"SHP103 loose-dim: {contract.where}: {fault}")


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
    if isinstance(spec, TensorSpec):
        yield path, spec, 1
    for inside, part, times in _parts(spec, path, phase):
        for place, tensor, count in tensors_of(part, inside, phase):
            yield place, tensor, times * count


def _places(spec: Spec, path: str, phase: str | None) -> Places[str]:
    """The places of each name; of a union's members the one where the name occurs least."""
    made = Places[str]()
    if isinstance(spec, TensorSpec):
        for axis in spec.shape.axes:
            for name in axis.symbols():
                made.shapes.setdefault(name, []).append(path)
        marked = made.marks if spec.ids_of is None else made.ids
        for name in sorted(spec.indexes.symbols() if spec.indexes is not None else ()):
            marked.setdefault(name, []).append(path)
        return made
    parts = [
        (_places(part, inside, phase), times) for inside, part, times in _parts(spec, path, phase)
    ]
    if isinstance(spec, UnionSpec):
        return least([places for places, _ in parts])
    for places, times in parts:
        made.add(places, times)
    return made


def _parts(spec: Spec, path: str, phase: str | None) -> Iterator[tuple[str, Spec, int]]:
    """What a spec is directly made of, with its path and how often it counts."""
    match spec:
        case OptionalSpec(item=item):
            yield path, item, 1
        case PhasedSpec():
            yield path, alternative(spec, path, phase), 1
        case CarrierSpec(cls=cls):
            for item in carrier_of(cls).fields:
                yield f"{path}.{item.name}", item.spec, 1
        case UnionSpec(items=items):
            for item in items:
                yield path, item, 1
        case SequenceSpec(item=item):
            yield f"{path}[]", item, 2
        case TupleSpec(items=items):
            for position, item in enumerate(items):
                yield f"{path}[{position}]", item, 1
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
