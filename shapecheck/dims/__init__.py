"""Named, owned dimensions: the vocabulary, shape strings, and Dims read from two configs.

Dims needs pydantic, which a lint run never loads: it is resolved on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapecheck.dims.expr import Poly
from shapecheck.dims.parse import ShapeText, parse_shape
from shapecheck.dims.vocabulary import DimName, Owner, declare, lookup

if TYPE_CHECKING:
    from shapecheck.dims.model import Dims, Size

__all__ = [
    "DimName",
    "Dims",
    "Owner",
    "Poly",
    "ShapeText",
    "Size",
    "declare",
    "lookup",
    "parse_shape",
]


def __getattr__(name: str) -> object:
    if name in ("Dims", "Size"):
        from shapecheck.dims import model

        return getattr(model, name)
    raise AttributeError(f"module 'shapecheck.dims' has no attribute {name!r}")
