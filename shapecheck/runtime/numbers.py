"""Which names have numbers while a plan is written, and how its code spells an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shapecheck.dims.expr import Poly
from shapecheck.dims.model import Dims
from shapecheck.dims.parse import Axis
from shapecheck.dims.vocabulary import lookup


@dataclass(slots=True, eq=False)
class Numbers:
    """The names of one plan under construction.

    The names of Dims are literals. Of the others, `bound` hold a number from here on; `maybe`
    start as None and may hold one, since a field that may be absent binds them.
    """

    dims: Dims | None
    bound: set[str] = field(default_factory=set[str])
    maybe: set[str] = field(default_factory=set[str])

    def rest(self, axis: Axis) -> Axis:
        """The axis with the numbers of Dims put in; ShapecheckError for one that Dims lacks."""
        if self.dims is None:
            return axis
        known: dict[str, Axis] = {}
        for name in axis.symbols():
            declared = lookup(name)
            if declared is None or not declared.per_call:
                known[name] = Poly.constant(self.dims[name])
        return axis.substitute(known)

    def has(self, axis: Axis) -> bool:
        """Whether Dims lacks none of the numbers that it should give; some pairs have no table."""
        if self.dims is None:
            return True
        declared = {name: lookup(name) for name in axis.symbols()}
        return all(
            (one is not None and one.per_call) or self.dims.get(name) is not None
            for name, one in declared.items()
        )

    def unknown(self, axes: Sequence[Axis]) -> set[str]:
        """The names in `axes` that may still have no number."""
        return {name for axis in axes for name in self.rest(axis).symbols()} - self.bound

    def known(self) -> list[str]:
        """Every name that has a variable by now."""
        return sorted(self.bound | self.maybe)


def solve(axis: Axis, unknown: Sequence[str]) -> tuple[int, Axis] | None:
    """`(factor, rest)` with `axis == factor*name + rest` for the one unknown name, else None."""
    factor, rest = 0, Poly.constant(0)
    for monomial, coefficient in axis.terms:
        if not any(name in unknown for name in monomial):
            rest = rest + Poly(((monomial, coefficient),))
        elif len(unknown) == 1 and len(monomial) == 1:
            factor += coefficient
        else:
            return None
    return (factor, rest) if factor > 0 else None


def expression(axis: Axis) -> str:
    """The axis as code: literals and variables."""
    terms: list[str] = []
    for monomial, coefficient in axis.terms:
        factors = [variable(name) for name in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        terms.append("*".join(factors))
    return " + ".join(terms) or "0"


def variable(name: str) -> str:
    """The local variable that holds the number (or dtype) of a name."""
    return f"_sc_n_{name.replace(' ', '_')}"
