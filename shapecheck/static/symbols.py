"""What a size is made of: owned symbols, the steps a size took, and the guards it holds under."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from shapecheck.diagnostics.model import Span
from shapecheck.dims.expr import Poly
from shapecheck.static.wording import wording


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose model something belongs to, and the evidence; equal when the owner is."""

    owner: str
    reason: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One named size; `key` tells unowned sizes apart, which equal only themselves."""

    name: str
    owner: str = ""
    key: str = ""
    owned: Ownership | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.owner}_{self.name}" if self.owner else self.name


@dataclass(frozen=True, slots=True)
class Step:
    """One station of a size: it was read, named, passed, stored, used to create, or returned.

    `read` is a config's number, `named` the axis of a tensor whose name says whose output it is.
    """

    kind: str
    text: str
    span: Span
    cell: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that holds where a value does; equal for the same test in the same sense."""

    test: ast.expr = field(hash=False, compare=False)
    sense: bool
    identity: int | str

    @staticmethod
    def of(test: ast.expr, sense: bool) -> Guard:
        """The guard `test` (or its negation); the test of a flag is the same wherever it stands."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, sense = test.operand, not sense
        flag = test
        while isinstance(flag, ast.Attribute):
            flag = flag.value
        return Guard(test, sense, wording(test) if isinstance(flag, ast.Name) else id(test))

    def __str__(self) -> str:
        text = wording(self.test)
        return text if self.sense else f"not ({text})"


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
