"""Fake arguments and carriers for a contract: every tensor it names, with symbols as sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch

from shapecheck.errors import ShapecheckError
from shapecheck.spec import (
    CarrierSpec,
    FunctionContract,
    HintSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
    alternative,
    carrier_of,
)

if TYPE_CHECKING:
    from shapecheck.symbolic.tracer import Trace

_PREFERRED = ("float32", "int64", "int32", "bool")
# A list stands for any length: two items share their names, and one item hides that.
_ITEMS = 2


def build(
    trace: Trace, spec: Spec, path: str, sizes: Mapping[str, int], phase: str | None = None
) -> object:
    """The value a spec describes; an Optional whose width has no number is None.

    `sizes` replaces names. Raises ShapecheckError for a hint that only the caller can fill.
    """
    match spec:
        case TensorSpec():
            return _tensor(trace, spec, sizes)
        case OptionalSpec(item=item):
            return build(trace, item, path, sizes, phase) if _has_numbers(trace, item) else None
        case PhasedSpec():
            return build(trace, alternative(spec, path, phase), path, sizes, phase)
        case CarrierSpec(cls=cls):
            return carrier(trace, cls, path, sizes, phase)
        case UnionSpec(items=items):
            return build(trace, items[0], path, sizes, phase)
        case SequenceSpec(container=container, item=item):
            made = [build(trace, item, f"{path}[]", sizes, phase) for _ in range(_ITEMS)]
            return tuple(made) if container is tuple else made
        case TupleSpec(items=items):
            return tuple(
                build(trace, item, f"{path}[{position}]", sizes, phase)
                for position, item in enumerate(items)
            )
        case HintSpec(hint=hint):
            return _plain(hint, path)


def carrier(
    trace: Trace, cls: type, path: str, sizes: Mapping[str, int], phase: str | None = None
) -> object:
    """An instance of a carrier class with every field of the contract."""
    fields = {
        field.name: build(trace, field.spec, f"{path}.{field.name}", sizes, phase)
        for field in carrier_of(cls).fields
    }
    return _construct(cls, fields)


def arguments(
    trace: Trace, contract: FunctionContract, sizes: Mapping[str, int], given: Mapping[str, object]
) -> dict[str, object]:
    """Keyword arguments for a contracted function; `given` fills what is no tensor."""
    spec = contract.spec
    made: dict[str, object] = dict(given)
    for parameter in spec.parameters:
        if parameter.name == contract.receiver or parameter.name in made:
            continue
        declared = contract.signature.parameters[parameter.name]
        if isinstance(parameter.spec, HintSpec):
            if declared.default is not inspect.Parameter.empty:
                continue
            if parameter.kind in (parameter.kind.VAR_POSITIONAL, parameter.kind.VAR_KEYWORD):
                continue
        where = f"{spec.where}({parameter.name})"
        made[parameter.name] = build(trace, parameter.spec, where, sizes, spec.phase)
    if spec.dims_parameter is not None and spec.dims_parameter not in made:
        made[spec.dims_parameter] = trace.dims
    return made


def _tensor(trace: Trace, spec: TensorSpec, sizes: Mapping[str, int]) -> torch.Tensor:
    shape = [
        axis.evaluate(lambda name: sizes[name] if name in sizes else trace.size(name))
        for axis in spec.shape.axes
    ]
    made = torch.empty(shape, dtype=_dtype(trace, spec))
    if spec.ids_of is not None:
        trace.ids(made, f"{spec.ids_of}_vocab")
    return made


def _dtype(trace: Trace, spec: TensorSpec) -> torch.dtype:
    if spec.dtype_of is not None:
        return trace.dtype(spec.dtype_of)
    if spec.dtypes is None:
        return torch.float32
    admitted = [name for name in _PREFERRED if name in spec.dtypes] or list(spec.dtypes)
    return getattr(torch, admitted[0].removesuffix("_"))


def _has_numbers(trace: Trace, spec: Spec) -> bool:
    if isinstance(spec, TensorSpec):
        return all(trace.has_size(name) for name in spec.shape.names())
    return True


def _plain(hint: object, path: str) -> object:
    simple: dict[object, object] = {int: 1, float: 1.0, bool: False, str: "", type(None): None}
    if hint in simple:
        return simple[hint]
    raise ShapecheckError(
        f"{path}: a value of {getattr(hint, '__name__', hint)} is not described by the contract; "
        "pass it yourself as a keyword"
    )


def _construct(cls: Callable[..., object], fields: Mapping[str, object]) -> object:
    return cls(**fields)
