"""Arithmetic on symbolic sizes, worked out once for each pair of operands in one trace.

A kernel asks about contiguity and strides of every operand, always with the same few products; in
a trace the answer never changes, because no guard narrows a symbol.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from torch.fx.experimental.sym_node import SymNode

from shapecheck.symbolic.expressions import Expression

_METHODS = (
    "add", "sub", "mul", "int_floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge", "sym_min",
    "sym_max", "and_", "or_",
)  # fmt: skip
_Operation = Callable[[SymNode, SymNode], SymNode]


@contextmanager
def remembered() -> Generator[None]:
    """In the block a result of SymNode's arithmetic is the one of the first time."""
    names = [f"_{name}" for name in _METHODS if hasattr(SymNode, f"_{name}")]
    originals = {name: getattr(SymNode, name) for name in names}
    for name, original in originals.items():
        setattr(SymNode, name, _remembering(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(SymNode, name, original)


def _remembering(original: _Operation) -> _Operation:
    known: dict[tuple[Expression, Expression, object, object, object], SymNode] = {}

    def operation(self: SymNode, other: SymNode) -> SymNode:
        # True and 1 are equal keys, so the kind of number is part of it.
        key = (self._expr, other._expr, self.pytype, other.pytype, self.shape_env)
        found = known.get(key)
        if found is None:
            found = known[key] = original(self, other)
        return found

    return operation
