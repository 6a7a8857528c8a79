"""Marks as run time makes them: the call itself, with the literals that the source gives it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

from shapecheck.errors import ContractTextError
from shapecheck.markers import DtypeOf, IdsOf, IndexOf, InPhase, dtype, ids, indexes, phase
from shapecheck.static.contracts.marks import resolve_node, tool_name
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.project import Project

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
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Pow: lambda a, b: a**b,
    ast.LShift: lambda a, b: a << b,
}
# Bits and exponents beyond this take long to compute.
_MOST = 1024
# No public name of these is a text.
_NO_TEXTS = frozenset({"builtins", "jaxtyping", "numpy", "torch", "typing", "typing_extensions"})


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


def means_nothing(project: Project, module: ModuleFacts, mark: ast.expr) -> bool:
    """Whether what stands among the marks surely is neither a mark nor a text for readers."""
    value = _literal(mark)
    if value is not _OPEN:
        return not isinstance(value, str)
    found = resolve_node(project, module, mark)
    if isinstance(found, str):
        holder, _, name = found.rpartition(".")
        is_public = holder in _NO_TEXTS and not name.startswith("_")
        return is_public or tool_name(found) in MARKERS
    return isinstance(found, ClassFacts | FunctionFacts | ModuleFacts)


def _literal(node: ast.expr) -> object:
    try:
        return _value(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _OPEN


def _value(node: ast.expr) -> object:
    """The value of a literal or of arithmetic with whole numbers; ValueError for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand)
        if isinstance(value, int):
            return -value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        compute = _ARITHMETIC.get(type(node.op))
        if compute is not None and isinstance(left, int) and isinstance(right, int):
            grows = isinstance(node.op, ast.Pow | ast.LShift)
            if left.bit_length() > _MOST or (grows and not 0 <= right <= _MOST):
                raise ValueError
            return compute(left, right)
    return ast.literal_eval(node)
