"""Polynomials over dimension names: the one arithmetic that contracts, Dims and lint share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

# A symbol is a name in contracts and Dims, and an owned config read in lint.
S = TypeVar("S")
T = TypeVar("T")
Monomial = tuple[S, ...]

_MAX_STEPS = 64  # the terms of a quotient that a size can have


@dataclass(frozen=True, slots=True)
class Poly(Generic[S]):
    """An integer polynomial in normal form, so equal polynomials are equal objects.

    `terms` are (symbols, coefficient) pairs with no zero coefficient, sorted by the text of the
    symbols; the constant term has no symbols.
    """

    terms: tuple[tuple[Monomial[S], int], ...]

    def __reduce__(self) -> tuple[type[Poly[S]], tuple[tuple[tuple[Monomial[S], int], ...]]]:
        # The way of a frozen class asks for the names of its fields each time.
        return type(self), (self.terms,)

    @staticmethod
    def constant(value: int) -> Poly[Any]:  # no symbols, so it mixes with any
        """The polynomial that is `value` whatever the symbols are."""
        return Poly((((), value),) if value else ())

    @staticmethod
    def symbol(symbol: T) -> Poly[T]:
        """The polynomial that is one symbol."""
        return Poly((((symbol,), 1),))

    @staticmethod
    def _normal(terms: Iterable[tuple[Monomial[T], int]]) -> Poly[T]:
        total: Counter[Monomial[T]] = Counter()
        for monomial, coefficient in terms:
            total[monomial] += coefficient
        kept = ((mono, coef) for mono, coef in total.items() if coef)
        return Poly(tuple(sorted(kept, key=lambda term: (len(term[0]) == 0, _key(term[0])))))

    def __add__(self, other: Poly[S]) -> Poly[S]:
        return Poly._normal([*self.terms, *other.terms])

    def __sub__(self, other: Poly[S]) -> Poly[S]:
        return Poly._normal([*self.terms, *((mono, -coef) for mono, coef in other.terms)])

    def __mul__(self, other: Poly[S]) -> Poly[S]:
        return Poly._normal(
            (tuple(sorted((*left, *right), key=str)), a * b)
            for left, a in self.terms
            for right, b in other.terms
        )

    def divide(self, other: Poly[S]) -> Poly[S] | None:
        """The exact quotient, or None when it is not a polynomial with integer coefficients."""
        if len(other.terms) != 1:
            return self._divide_by_sum(other) if self.terms else None
        (divisor, by), result = other.terms[0], list[tuple[Monomial[S], int]]()
        for monomial, coefficient in self.terms:
            rest = list(monomial)
            for symbol in divisor:
                if symbol not in rest:
                    return None
                rest.remove(symbol)
            if coefficient % by:
                return None
            result.append((tuple(rest), coefficient // by))
        return Poly._normal(result)

    def _divide_by_sum(self, other: Poly[S]) -> Poly[S] | None:
        """Long division: the leading term of what is left by the leading term of the divisor."""
        if not other.terms:
            return None
        quotient: Poly[S] = Poly(())
        rest = self
        first = Poly((other._leading(),))
        for _ in range(_MAX_STEPS):
            if not rest.terms:
                return quotient
            part = Poly((rest._leading(),)).divide(first)
            if part is None:
                return None
            quotient, rest = quotient + part, rest - part * other
        return None

    def _leading(self) -> tuple[Monomial[S], int]:
        """The term of the highest degree; among equals the last by its names."""
        return max(self.terms, key=lambda term: (len(term[0]), [str(one) for one in term[0]]))

    def symbols(self) -> frozenset[S]:
        """Every symbol that occurs."""
        return frozenset(symbol for monomial, _ in self.terms for symbol in monomial)

    def as_int(self) -> int | None:
        """The value of a constant polynomial, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    def as_symbol(self) -> S | None:
        """The symbol, when the polynomial is exactly one symbol, else None."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if len(monomial) == 1 and coefficient == 1:
                return monomial[0]
        return None

    def substitute(self, values: Mapping[S, Poly[S]]) -> Poly[S]:
        """The polynomial with each symbol in `values` replaced."""
        result: Poly[S] = Poly.constant(0)
        for monomial, coefficient in self.terms:
            term: Poly[S] = Poly.constant(coefficient)
            for symbol in monomial:
                term = term * values.get(symbol, Poly.symbol(symbol))
            result = result + term
        return result

    def evaluate(self, value_of: Callable[[S], int]) -> int:
        """The number, with every symbol's value asked from `value_of`."""
        total = 0
        for monomial, coefficient in self.terms:
            for symbol in monomial:
                coefficient *= value_of(symbol)
            total += coefficient
        return total

    def __str__(self) -> str:
        return "".join(self._pieces()) or "0"

    def _pieces(self) -> Iterator[str]:
        for position, (monomial, coefficient) in enumerate(self.terms):
            sign = "-" if coefficient < 0 else "+" if position else ""
            size = abs(coefficient)
            factors = [str(symbol) for symbol in monomial]
            if size != 1 or not factors:
                factors.insert(0, str(size))
            yield sign + "*".join(factors)


def _key(monomial: Monomial[S]) -> tuple[str, ...]:
    return tuple(str(symbol) for symbol in monomial)
