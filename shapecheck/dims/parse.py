"""Shape strings: one token is one axis, everything jaxtyping would read otherwise is refused."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass

from shapecheck.dims.expr import Poly
from shapecheck.dims.vocabulary import lookup, near_misses
from shapecheck.errors import ContractTextError

Axis = Poly[str]

# No real axis comes near; past them a product of sums would blow up in time and in print.
_MAX_LENGTH = 200
_MAX_TERMS = 64
_MAX_SIZE = 2**31 - 1

_AROUND = re.compile(r"\s*([-+*/])\s*")
_WORD = re.compile(r"\w+")
_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class ShapeText:
    """A parsed shape string; `axes` hold polynomials over names of the vocabulary."""

    text: str
    axes: tuple[Axis, ...]

    def names(self) -> frozenset[str]:
        """Every name that occurs in an axis."""
        return frozenset[str]().union(*(axis.symbols() for axis in self.axes))

    def __str__(self) -> str:
        return ", ".join(str(axis) for axis in self.axes)


_HINTS = (
    ("...", "write out every axis; a contract that accepts any rank checks nothing"),
    ("_", "name the axis; an anonymous axis checks nothing"),
    ("*", "variadic axes bind to anything; write out every axis"),
    ("#", "broadcastable axes bind to 1 and to n; write the size the boundary really carries"),
    ("?", "tree axes differ per leaf; write one name per axis"),
    ("{", "f-string axes are evaluated by jaxtyping at call time; declare a name instead"),
)


def parse_shape(text: str, more: Collection[str] = ()) -> ShapeText:
    """The axes of a jaxtyping shape string, which may be empty for a scalar tensor.

    `more` are names that count as declared besides those of the vocabulary. Raises
    ContractTextError: SHP101 for a token that is not a name, an integer or a sum or product of
    names without spaces, SHP102 for a name outside the vocabulary.
    """
    return ShapeText(text, tuple(_parse_token(token, text, more) for token in text.split()))


def shape_faults(text: str, more: Collection[str] = ()) -> tuple[ContractTextError, ...]:
    """What `parse_shape` has to say about every token, each complaint once."""
    faults: dict[str, ContractTextError] = {}
    for token in text.split():
        try:
            _parse_token(token, text, more)
        except ContractTextError as error:
            faults.setdefault(str(error), error)
    return tuple(faults.values())


def _parse_token(token: str, text: str, more: Collection[str]) -> Axis:
    for start, hint in _HINTS:
        if token.startswith(start):
            raise _syntax(token, text, hint)
    if token in "+-*/" or token[-1] in "+-*/" or token[0] in "+-/":
        joined = _AROUND.sub(r"\1", text.strip())
        raise _syntax(token, text, f"a token is a whole axis: write {joined!r} without spaces")
    _check_words(token, text)
    try:
        node = ast.parse(token, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _syntax(token, text, "use a name, an integer, or names joined by * and +") from None
    axis = _axis(node, token, text)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and lookup(inner.id) is None and inner.id not in more:
            raise _unknown(inner.id, text, more)
    size = axis.as_int()
    if size is not None and not 0 <= size <= _MAX_SIZE:
        raise _syntax(token, text, f"a size is a number from 0 to {_MAX_SIZE}")
    return axis


def _check_words(token: str, text: str) -> None:
    """Nothing is left that Python's grammar and jaxtyping's would read differently."""
    if len(token) > _MAX_LENGTH:
        raise _syntax(
            token, text, f"an axis has at most {_MAX_LENGTH} characters; declare a name for it"
        )
    if not token.isascii():
        # Python folds look-alike letters into one identifier, jaxtyping keeps them apart.
        raise _syntax(token, text, "write the name in plain ASCII letters")
    for word in _WORD.findall(token):
        if word[0].isdigit() and not _PLAIN_NUMBER.fullmatch(word):
            raise _syntax(token, text, f"write {word!r} as a plain decimal number, or as a name")


def _axis(node: ast.expr, token: str, text: str) -> Axis:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and value >= 0:
            return Poly.constant(value)
        case ast.Name(id=name):
            return Poly.symbol(name)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            first, second = _axis(left, token, text), _axis(right, token, text)
            if len(first.terms) * len(second.terms) > _MAX_TERMS:
                raise _syntax(token, text, "too many terms; declare a name for the product")
            return first * second
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _axis(left, token, text) + _axis(right, token, text)
        case ast.BinOp(left=ast.Name(id=left), op=ast.Sub(), right=ast.Name(id=right)):
            hint = f"'-' subtracts; if this is one name write {left}_{right}"
        case ast.BinOp(op=ast.Sub()):
            # `num_draft_tokens-1` and `1+(num_steps-1)*topk` are real widths of a draft tree.
            return _difference(node, token, text)
        case ast.Attribute():
            hint = "an axis is a name of the vocabulary, not an attribute; declare a name"
        case _:
            hint = "use a name, an integer, or names joined by * and +"
    raise _syntax(token, text, hint)


def _difference(node: ast.BinOp, token: str, text: str) -> Axis:
    match node.right:
        case ast.Constant(value=int()):
            return _axis(node.left, token, text) - _axis(node.right, token, text)
        case _:
            raise _syntax(token, text, "only an integer may be subtracted, as in num_steps-1")


def _syntax(token: str, text: str, hint: str) -> ContractTextError:
    return ContractTextError(
        f"SHP101 contract-syntax: axis {_short(token)} in {_short(text)}: {hint}"
    )


def _unknown(name: str, text: str, more: Collection[str]) -> ContractTextError:
    near = near_misses(name, more)
    what = f"did you mean {' or '.join(near)}? else " if near else ""
    return ContractTextError(
        f"SHP102 unknown-dim: {name!r} in {_short(text)} is not in the vocabulary: "
        f"{what}add it with shapecheck.declare({name!r}, owner=...)"
    )


def _short(text: str) -> str:
    return repr(text) if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]!r}..."
