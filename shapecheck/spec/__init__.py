"""Contracts as data: read from hints, needed by run time, trace and testing; no torch here."""

from shapecheck.spec.absence import absent_tensor
from shapecheck.spec.carrier import CarrierContract, carrier_of, declare_carrier
from shapecheck.spec.contract import FunctionContract, contract_of, declare_contract
from shapecheck.spec.declared import watching
from shapecheck.spec.hints import read_hint
from shapecheck.spec.model import (
    CarrierSpec,
    ContractSpec,
    FieldSpec,
    HintSpec,
    OptionalSpec,
    ParameterSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
)
from shapecheck.spec.occurrences import alternative, refuse_loose, roots, tensors_of

__all__ = [
    "CarrierContract",
    "CarrierSpec",
    "ContractSpec",
    "FieldSpec",
    "FunctionContract",
    "HintSpec",
    "OptionalSpec",
    "ParameterSpec",
    "PhasedSpec",
    "SequenceSpec",
    "Spec",
    "TensorSpec",
    "TupleSpec",
    "UnionSpec",
    "absent_tensor",
    "alternative",
    "carrier_of",
    "contract_of",
    "declare_carrier",
    "declare_contract",
    "read_hint",
    "refuse_loose",
    "roots",
    "tensors_of",
    "watching",
]
