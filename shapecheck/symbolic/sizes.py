"""A size as a contract compares it: two are equal when they are so for all numbers."""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy

from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.shape_env import expression

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder


@dataclass(frozen=True, slots=True, eq=False)
class Size:
    """Passes for an int where contracts are judged; `==` and `!=` ask for the names, not numbers.

    Sizes that depend on data, and equal numbers within one owner, count as equal.
    """

    expr: Expression
    recorder: Recorder
    named: bool = False  # show the names also where the text around it does not

    @property
    def number(self) -> int:
        """The number behind it in this run."""
        return int(self.recorder.judge.value(self.expr))

    @property
    def text(self) -> str:
        """The size in names."""
        return self.recorder.judge.text(self.expr)

    def is_same(self, other: Size | int) -> bool:
        """Whether both are one size, allowed equalities included."""
        right = self._expr(other)
        if self.expr == right:
            return True
        both = self.expr.free_symbols | right.free_symbols
        names = self.recorder.judge.names
        known = bool(both) and all(symbol in names for symbol in both)
        return known and self.recorder.judge.equation(self.expr, right) is None

    def names(self) -> frozenset[str]:
        """The dimensions it is made of."""
        names = self.recorder.judge.names
        return frozenset(names[symbol] for symbol in self.expr.free_symbols if symbol in names)

    def __eq__(self, other: object) -> bool:
        return not self != other

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, Size | int):
            return True
        right = self._expr(other)
        if not (self.expr.free_symbols or right.free_symbols):
            return bool(self.expr != right)
        judge = self.recorder.judge
        equation = judge.equation(self.expr, right)
        if equation is None:
            return False
        if judge.value(self.expr) != judge.value(right):
            return True
        return self.recorder.parties.are_several(equation.names)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # equality is not transitive

    def __lt__(self, other: Size | int) -> bool:
        return self.number < int(self.recorder.judge.value(self._expr(other)))

    def __ge__(self, other: Size | int) -> bool:
        return not self < other

    def __add__(self, other: Size | int) -> Size:
        return Size(self.expr + self._expr(other), self.recorder)

    def __sub__(self, other: Size | int) -> Size:
        return Size(self.expr - self._expr(other), self.recorder)

    def __rsub__(self, other: int) -> Size:
        return Size(other - self.expr, self.recorder)

    def __mul__(self, other: Size | int) -> Size:
        return Size(self.expr * self._expr(other), self.recorder)

    __radd__, __rmul__ = __add__, __mul__

    def over(self, divisor: Size | int) -> Size | None:
        """The exact quotient, or None when it is none for all numbers."""
        below = self._expr(divisor)
        if below == 0:
            return None
        quotient = sympy.cancel(self.expr / below)
        symbols = sorted(quotient.free_symbols, key=str)
        if not quotient.is_polynomial(*symbols):
            return None
        factors = sympy.Poly(quotient, *symbols).coeffs() if symbols else [quotient]
        return Size(quotient, self.recorder) if all(one.is_integer for one in factors) else None

    def __mod__(self, divisor: Size | int) -> int:
        below = Size(self._expr(divisor), self.recorder)
        if self.over(below) is not None:
            return 0
        if not self.recorder.parties.are_several(self.names() | below.names()):
            return self.number % below.number
        return 1

    def __rmod__(self, number: int) -> int:
        return Size(sympy.Integer(number), self.recorder) % self

    def __floordiv__(self, divisor: Size | int) -> int:
        return self.number // int(self.recorder.judge.value(self._expr(divisor)))

    def __rfloordiv__(self, number: int) -> int:
        return number // self.number

    def __bool__(self) -> bool:
        return self.expr != 0

    def __str__(self) -> str:
        """The number, as at run time; with its formula when it is no single name."""
        if not self.expr.free_symbols or (self.expr.is_Symbol and not self.named):
            return str(self.number)
        return f"{self.text}={self.number}"

    def _expr(self, other: Size | int) -> Expression:
        return other.expr if isinstance(other, Size) else expression(other)
