"""Contracts for tensors that cross a phase boundary of a draft/verify engine.

The names are resolved on first use, so that `shapecheck lint` starts without pydantic or torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapecheck.dims import Dims, declare
    from shapecheck.errors import ContractTextError, ShapecheckError, ShapeContractError
    from shapecheck.markers import dtype, ids, indexes, phase
    from shapecheck.runtime import (
        carrier,
        check_shape,
        contract,
        enable,
        graph_buffers,
        invariant,
        stats,
    )

__all__ = [
    "ContractTextError",
    "Dims",
    "ShapeContractError",
    "ShapecheckError",
    "carrier",
    "check_shape",
    "contract",
    "declare",
    "dtype",
    "enable",
    "graph_buffers",
    "ids",
    "indexes",
    "invariant",
    "phase",
    "stats",
]

__version__ = "0.1.0"

_HOME = {
    "ContractTextError": "shapecheck.errors",
    "Dims": "shapecheck.dims",
    "ShapeContractError": "shapecheck.errors",
    "ShapecheckError": "shapecheck.errors",
    "carrier": "shapecheck.runtime",
    "check_shape": "shapecheck.runtime",
    "contract": "shapecheck.runtime",
    "declare": "shapecheck.dims",
    "dtype": "shapecheck.markers",
    "enable": "shapecheck.runtime",
    "graph_buffers": "shapecheck.runtime",
    "ids": "shapecheck.markers",
    "indexes": "shapecheck.markers",
    "invariant": "shapecheck.runtime",
    "phase": "shapecheck.markers",
    "stats": "shapecheck.runtime",
}


def __getattr__(name: str) -> object:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'shapecheck' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
