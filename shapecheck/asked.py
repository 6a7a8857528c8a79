"""What tests ask of `make`: odd requests are refused before anything is made.

Every text says what was given and ends in what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from typing import cast

from shapecheck.dims.model import Dims
from shapecheck.dims.vocabulary import lookup, near_misses
from shapecheck.errors import ShapecheckError
from shapecheck.spec import (
    CarrierSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
    carrier_of,
)


def refuse_no_carrier(where: str, cls: object) -> None:
    """ShapecheckError when it is no class, or a class without a contract."""
    if not isinstance(cls, type):
        given = f"the class {type(cls).__name__} itself" if _is_carrier(type(cls)) else "a class"
        raise ShapecheckError(
            f"{where}: {_shown(cls)} is no class; give {given}, with @carrier above its @dataclass"
        )
    if not _is_carrier(cls):
        raise ShapecheckError(
            f"{where}: {cls.__name__} is no carrier; put @carrier above its @dataclass"
        )


def refuse_no_dims(where: str, dims: object) -> None:
    """ShapecheckError when it is no Dims."""
    if not isinstance(dims, Dims):
        raise ShapecheckError(
            f"{where}: {_shown(dims)} is no Dims; give those of a pair, or distinct_dims().wider"
        )


def refuse_sizes(where: str, sizes: Mapping[str, object]) -> None:
    """ShapecheckError for a name that is not in the vocabulary, and for what is no count."""
    import torch

    for name, size in sizes.items():
        if lookup(name) is None:
            near = "".join(f"; did you mean {each}?" for each in near_misses(name)[:1])
            raise ShapecheckError(
                f"{where}: {name} is no name of the vocabulary{near or '; declare it'}"
            )
        if isinstance(size, bool) or not isinstance(size, Integral | torch.SymInt):
            raise ShapecheckError(f"{where}: {name}={_shown(size)}: give a whole number")
        if isinstance(size, Integral) and int(size) < 0:
            raise ShapecheckError(f"{where}: {name}={size}: give a size of 0 or more")


def refuse_unused(where: str, specs: Iterable[Spec], sizes: Iterable[str], dims: Dims) -> None:
    """ShapecheckError for a size of which nothing is made, or that Dims already have another of.

    A name that stands in another phase, or in an Optional that is left out, is used.
    """
    used = frozenset[str]().union(*map(names_in, specs))
    for name in sizes:
        if name not in used:
            there = ", ".join(sorted(used)) or "none"
            raise ShapecheckError(
                f"{where}: {name}: nothing is made of that size; correct the name (there is "
                f"{there}), or leave it out"
            )
        declared = lookup(name)
        given = dims.get(name)
        fixed = declared is not None and not declared.per_call and not dims.symbolic
        if fixed and given is not None:
            raise ShapecheckError(
                f"{where}: {name}: Dims have {given} ({dims.origin(name)}), and what is made of "
                f"another breaks its contract; give dims.with_sizes({name}=(..., 'why'))"
            )


def refuse_no_names(where: str, what: str, given: object) -> None:
    """ShapecheckError when it is no collection of names; one text is a collection of letters."""
    if isinstance(given, str) or not isinstance(given, Collection):
        right = f", {what}=[{given!r}]" if isinstance(given, str) else ""
        raise ShapecheckError(f"{where}: {what}={_shown(given)}: give a list of names{right}")
    _refuse_other_names(where, what, cast("Collection[object]", given))


def refuse_no_values(where: str, what: str, given: object) -> None:
    """ShapecheckError when it does not map names to values."""
    if given is not None and not isinstance(given, Mapping):
        raise ShapecheckError(
            f"{where}: {what}={_shown(given)}: give names with their values, {what}={{'name': ...}}"
        )
    _refuse_other_names(where, what, cast("Collection[object]", given or ()))


def _refuse_other_names(where: str, what: str, given: Collection[object]) -> None:
    for one in given:
        if not isinstance(one, str):
            raise ShapecheckError(f"{where}: {what} has {_shown(one)}, no name; give texts")


def names_in(spec: Spec) -> frozenset[str]:
    """Every name of dims that a tensor of the spec has or counts along, in any phase."""
    return _names_in(spec, frozenset())


def _names_in(spec: Spec, above: frozenset[type]) -> frozenset[str]:
    match spec:
        case TensorSpec(shape=shape, indexes=indexes):
            return shape.names() | (indexes.symbols() if indexes is not None else frozenset[str]())
        case OptionalSpec(item=item) | SequenceSpec(item=item):
            parts = [item]
        case PhasedSpec(alternatives=alternatives):
            parts = [item for _, item in alternatives]
        case UnionSpec(items=items) | TupleSpec(items=items):
            parts = list(items)
        case CarrierSpec(cls=cls) if cls not in above:
            parts = [item.spec for item in carrier_of(cls).fields]
            above |= {cls}
        case _:
            parts = list[Spec]()
    return frozenset[str]().union(*(_names_in(part, above) for part in parts))


def _is_carrier(cls: type) -> bool:
    try:
        carrier_of(cls)
    except ShapecheckError:
        return False
    return True


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"an instance of {type(value).__name__}"
