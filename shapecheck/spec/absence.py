"""Tensors that a pair does not have at all, because a name of their shape has no number."""

from __future__ import annotations

from shapecheck.dims.model import Dims
from shapecheck.spec.carrier import carrier_of
from shapecheck.spec.model import CarrierSpec, PhasedSpec, Spec, TensorSpec, TupleSpec


def absent_tensor(spec: Spec, dims: Dims | None, phase: str | None) -> TensorSpec | None:
    """The first tensor that a value of this spec must have and the pair cannot, or None.

    STANDALONE, for one, has no `recurrent_hidden`: what requires such a tensor must be None.
    """
    match spec:
        case TensorSpec(shape=shape) if dims is not None:
            missing = any(name in dims and dims.get(name) is None for name in shape.names())
            return spec if missing else None
        case PhasedSpec():
            chosen = spec.in_phase(phase)
            return None if chosen is None else absent_tensor(chosen, dims, phase)
        case CarrierSpec(cls=cls):
            parts = tuple(item.spec for item in carrier_of(cls).fields)
        case TupleSpec(items=items):
            parts = items
        case _:
            return None
    return next((found for part in parts if (found := absent_tensor(part, dims, phase))), None)
