"""Judging an equality of symbolic sizes: identity, what remains of it, and whose sizes remain."""

# sympy ships no complete types; what comes out of it is an Expression.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy

# A sympy size, relation or truth value: sympy's own classes are untyped.
Expression: TypeAlias = Any

_REMAINDERS = ("Mod", "PythonMod")
_QUOTIENTS = ("FloorDiv", "CleanDiv")
_PARTS = (*_REMAINDERS, *_QUOTIENTS)
_TRIALS = 6
_LARGEST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """Two sizes that had to be equal, reduced to what is not the same on both sides."""

    left: str
    right: str
    names: frozenset[str]

    def __str__(self) -> str:
        return f"{self.left} == {self.right}"


@dataclass(slots=True, kw_only=True)
class Judge:
    """Decides which equations are evidence, given the numbers behind the symbols.

    `names` maps each symbol to its dimension, `hints` to its number; `counted` are the symbols
    that the traced code turned into numbers (loops), `merged` what `allow` declared equal.
    """

    names: dict[Expression, str] = field(default_factory=dict[Expression, str])
    hints: dict[Expression, Expression] = field(default_factory=dict[Expression, Expression])
    counted: set[Expression] = field(default_factory=set[Expression])
    merged: dict[Expression, Expression] = field(default_factory=dict[Expression, Expression])

    def know(self, symbol: Expression, name: str, number: int) -> None:
        """Add a dimension."""
        self.names[symbol] = name
        self.hints[symbol] = sympy.Integer(number)

    def guess(self, symbol: Expression, number: int) -> None:
        """Give a number to a size that depends on data."""
        self.hints[symbol] = sympy.Integer(number)

    def value(self, expr: Expression) -> Expression:
        """The expression with every known symbol replaced by its number."""
        return expr.xreplace(self.hints)

    def equations(self, expr: Expression, answer: bool) -> list[Equation]:
        """What `expr` being `answer` says must be equal and is not the same by itself."""
        if isinstance(expr, sympy.Not):
            return self.equations(expr.args[0], not answer)
        if isinstance(expr, (sympy.And, sympy.Or)):
            return self._connective(expr, answer)
        if isinstance(expr, sympy.Eq if answer else sympy.Ne):
            equation = self.equation(*expr.args)
            return [] if equation is None else [equation]
        return []

    def wanted(self, expr: Expression) -> list[Equation]:
        """The equations that a refused relation would have needed."""
        return self.equations(expr, isinstance(expr, (sympy.Eq, sympy.And, sympy.Or)))

    def inequality(self, expr: Expression) -> Equation | None:
        """The two sides of a comparison of order, when neither side is a plain number."""
        if not isinstance(expr, sympy.Rel) or isinstance(expr, (sympy.Eq, sympy.Ne)):
            return None
        order: Expression = expr
        small, large = order.lts, order.gts
        if not (small.free_symbols and large.free_symbols):
            return None
        if not self._named(expr) or self._always(sympy.Ge(large, small)):
            return None
        small, large = _without_common(small, large)
        return self._equation(small, large)

    def root(self, name: str) -> str:
        """The one name that stands for all that `merge` declared equal to it."""
        symbol = next(symbol for symbol, known in self.names.items() if known == name)
        return self.names[self.merged.get(symbol, symbol)]

    def merge(self, left: Expression, right: Expression) -> None:
        """Declare two dimensions equal: their meeting is no evidence from now on."""
        left, right = (side.xreplace(self.merged) for side in (left, right))
        if left == right:
            return
        for symbol, known in list(self.merged.items()):
            if known == left:
                self.merged[symbol] = right
        self.merged[left] = right

    def text(self, expr: Expression | int) -> str:
        """The expression in the names of dimensions."""
        if isinstance(expr, int):
            return str(expr)
        symbols = {symbol: sympy.Symbol(name) for symbol, name in self.names.items()}
        return str(expr.xreplace(symbols))

    def readable(self, message: str) -> str:
        """The first line of a message of torch, with its symbols replaced by names."""
        names = {str(symbol): name for symbol, name in self.names.items()}
        first = (message.strip().splitlines() or [""])[0]
        return re.sub(r"\b\w+\b", lambda word: names.get(word.group(), word.group()), first)

    def _named(self, expr: Expression) -> bool:
        return all(symbol in self.names for symbol in expr.free_symbols)

    def _connective(self, expr: Expression, answer: bool) -> list[Equation]:
        agreeing = [arg for arg in expr.args if bool(self.value(arg)) is answer]
        needed = [self.equations(arg, answer) for arg in agreeing]
        if isinstance(expr, sympy.Or) is answer:
            # One part decides alone: the one that needs least, and nothing if one needs nothing.
            return min(needed, key=len, default=[])
        return list(dict.fromkeys(equation for part in needed for equation in part))

    def equation(self, left: Expression, right: Expression) -> Equation | None:
        """What is left of `left == right`; None when it always holds or depends on data.

        Where it holds as soon as a quotient (`hidden // heads`) is exact, that is what is left.
        """
        merged = self.merged
        left, right = (_plain(side.xreplace(merged)) for side in (left, right))
        divided: dict[tuple[Expression, Expression], None] = {}
        left, right = (self._exact(side, divided) for side in (left, right))
        asked = [(left, right), *((sympy.Mod(*one), sympy.Integer(0)) for one in divided)]
        return next((one for sides in asked if (one := self._unequal(*sides))), None)

    def _exact(
        self, expr: Expression, divided: dict[tuple[Expression, Expression], None]
    ) -> Expression:
        """The expression with every quotient that leaves nothing in this run as a fraction.

        `divided` gets what was divided, and by what.
        """
        if not expr.args:
            return expr
        args = [self._exact(arg, divided) for arg in expr.args]
        if type(expr).__name__ in _QUOTIENTS and self._leaves_nothing(*args):
            divided[args[0], args[1]] = None
            return args[0] / args[1]
        return expr if list(expr.args) == args else expr.func(*args)

    def _leaves_nothing(self, value: Expression, by: Expression) -> bool:
        known = self._named(value) and self._named(by)
        below = self.value(by) if known else 0
        return below != 0 and bool(self.value(value) % below == 0)

    def _unequal(self, left: Expression, right: Expression) -> Equation | None:
        """What is left of an equality in which quotients are what they are."""
        if right.is_zero and type(left).__name__ in _REMAINDERS:
            left = _shortened(left)
            if not left.free_symbols or not left.args[1].free_symbols:
                return None  # a number divides: no two sizes met
        both = left.free_symbols | right.free_symbols
        if not both or not all(symbol in self.names for symbol in both):
            return None
        if self._same(left, right):
            return None
        # A literal may be a loop's count: then the loop's dimension is that number here.
        if self.counted and _has_literal(left, right):
            numbers = {symbol: self.hints[symbol] for symbol in self.counted}
            if self._same(left.xreplace(numbers), right.xreplace(numbers)):
                return None
        short = _without_common(left, right)
        return self._equation(
            *(short if any(side.free_symbols for side in short) else (left, right))
        )

    def _equation(self, left: Expression, right: Expression) -> Equation:
        symbols = left.free_symbols | right.free_symbols
        return Equation(
            left=self.text(left),
            right=self.text(right),
            names=frozenset(self.names[symbol] for symbol in symbols),
        )

    def _same(self, left: Expression, right: Expression) -> bool:
        # By evaluation: sympy does not simplify floor division and remainders.
        return self._always(sympy.Eq(left, right, evaluate=False))

    def _always(self, relation: Expression) -> bool:
        symbols = sorted(relation.free_symbols, key=str)
        draw = random.Random(0)
        for _ in range(_TRIALS):
            numbers = {symbol: sympy.Integer(draw.randint(2, _LARGEST)) for symbol in symbols}
            try:
                if not _holds(relation, numbers):
                    return False
            except ZeroDivisionError:  # these numbers are outside of what the relation is about
                continue
        return True


def _holds(relation: Expression, numbers: Mapping[Expression, Expression]) -> bool:
    left, right = (side.xreplace(numbers) for side in relation.args)
    return bool(relation.func(left, right))


def _plain(expr: Expression) -> Expression:
    # Strides are Max(1, size); sizes here are at least 2, so the maximum is the size.
    replaced: dict[Expression, Expression] = {}
    for node in sympy.preorder_traversal(expr):
        if type(node).__name__ == "Max":
            rest = [arg for arg in node.args if arg not in (0, 1)]
            if len(rest) == 1:
                replaced[node] = rest[0]
    return expr.xreplace(replaced) if replaced else expr


def _shortened(remainder: Expression) -> Expression:
    """The remainder without the factors that both sides have: it is 0 when that is."""
    value, by = remainder.args
    if not (value.is_polynomial() and by.is_polynomial()):
        return remainder
    common = sympy.gcd(value, by)
    return remainder.func(sympy.cancel(value / common), sympy.cancel(by / common))


def _has_literal(*sides: Expression) -> bool:
    return any(abs(int(number)) > 1 for side in sides for number in side.atoms(sympy.Integer))


def _without_common(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    # Quotients and remainders are factors like names, whatever is in them.
    whole = {
        node: sympy.Dummy(positive=True, integer=True)
        for side in (left, right)
        for node in sympy.preorder_traversal(side)
        if type(node).__name__ in _PARTS
    }
    if whole:
        back = {dummy: node for node, dummy in whole.items()}
        sides = _without_common(left.xreplace(whole), right.xreplace(whole))
        return sides[0].xreplace(back), sides[1].xreplace(back)
    if not (left.is_polynomial() and right.is_polynomial()):
        return left, right
    difference = sympy.expand(left - right)
    positive = [term for term in sympy.Add.make_args(difference) if not _negative(term)]
    negative = [-term for term in sympy.Add.make_args(difference) if _negative(term)]
    if not positive or not negative:
        return left, right
    # The sides keep their order: what the code had on the left stays on the left.
    top, bottom = sympy.Add(*positive), sympy.Add(*negative)
    common = sympy.gcd(top, bottom)
    return sympy.factor(sympy.cancel(top / common)), sympy.factor(sympy.cancel(bottom / common))


def _negative(term: Expression) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)
