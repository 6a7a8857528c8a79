"""What a size is made of: owned symbols, and the steps that a size took.

Never changed once made; not declared frozen for the reason given in `values`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shapecheck.diagnostics.model import Span
from shapecheck.dims.expr import Poly


@dataclass(unsafe_hash=True, slots=True)
class Ownership:
    """Whose model something belongs to, and the evidence; equal when the owner is."""

    owner: str
    reason: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(unsafe_hash=True, slots=True)
class Symbol:
    """One named size; `key` tells unowned sizes apart, which equal only themselves."""

    name: str
    owner: str = ""
    key: str = ""
    owned: Ownership | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.owner}_{self.name}" if self.owner else self.name


@dataclass(unsafe_hash=True, slots=True)
class Step:
    """One station of a size: it was read, named, passed, stored, used to create, or returned.

    `read` is a config's number, `named` the axis of a tensor whose name says whose output it is.
    """

    kind: str
    text: str
    span: Span
    cell: str = ""


SizePoly = Poly[Symbol]


_MAX_TERMS = 8
_MAX_FACTORS = 16
_MAX_BITS = 63


def bounded(poly: SizePoly) -> SizePoly | None:
    """The polynomial, or None when it is larger than a size that a program means."""
    small = len(poly.terms) <= _MAX_TERMS and all(
        len(factors) <= _MAX_FACTORS and number.bit_length() <= _MAX_BITS
        for factors, number in poly.terms
    )
    return poly if small else None


def owners_of(poly: SizePoly) -> frozenset[str]:
    """The owners of every symbol; the empty text stands for an unowned one."""
    return frozenset(symbol.owner for symbol in poly.symbols())


def owner_conflict(left: SizePoly, right: SizePoly) -> bool:
    """Whether the two are the same kind of size (hidden, vocab) of two different models."""
    left_symbols, right_symbols = left.symbols(), right.symbols()
    if not left_symbols or not right_symbols:
        return False
    one, other = owners_of(left), owners_of(right)
    if len(one) != 1 or len(other) != 1 or "" in one or "" in other or one == other:
        return False
    return {symbol.name for symbol in left_symbols} == {symbol.name for symbol in right_symbols}
