"""Marks as run time makes them: the call itself, with the literals that the source gives it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

from shapecheck.errors import ContractTextError
from shapecheck.markers import DtypeOf, IdsOf, IndexOf, InPhase, dtype, ids, indexes, phase

Mark: TypeAlias = DtypeOf | IdsOf | IndexOf | InPhase

# What makes a mark, by its public name, and how it is written.
MARKERS: Mapping[str, tuple[Callable[..., Mark], str]] = {
    "dtype": (dtype, "dtype('target')"),
    "ids": (ids, "ids('target') or ids('target', pad=-1)"),
    "indexes": (indexes, "indexes('bs*topk') or indexes('bs*topk', pad=-1)"),
    "phase": (phase, "phase('decode')"),
}
# What an argument is when the source does not tell.
_OPEN = object()


def mark_made(name: str, call: ast.Call) -> Mark | None:
    """The mark of a call of this marker, or None where an argument is no literal.

    Raises ContractTextError (SHP101) for a call that raises when the module is imported.
    """
    marker, example = MARKERS[name]
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    positional = [_literal(one) for one in call.args]
    named = {one.arg: _literal(one.value) for one in call.keywords if one.arg is not None}
    known = all(value is not _OPEN for value in (*positional, *named.values()))
    if len(named) < len(call.keywords) or not known:
        return None
    try:
        return marker(*positional, **named)
    except TypeError as error:
        raise ContractTextError(f"SHP101 contract-syntax: {error}; write {example}") from None


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _OPEN
