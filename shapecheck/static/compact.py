"""Syntax trees in a third of the memory: what is kept of a file until the end of a run.

A node of Python's own parser keeps all it holds in a dict. A compact node is of a subclass of the
same class with a slot for each of it, so whoever asks with `isinstance` or by name sees no
difference. Where an expression ends is left out: nobody asks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

N = TypeVar("N", bound=ast.AST)
T = TypeVar("T")

_PLACE = ("lineno", "col_offset")
_ENDS = {"end_lineno", "end_col_offset"}
# Nearly always None, as the class says: what is set nevertheless goes where Python puts it.
_RARE = {"kind", "type_comment"}


def _compact_class(kind: type[ast.AST]) -> type[ast.AST]:
    slots = [name for name in kind._fields if name not in _RARE]
    slots += [name for name in _PLACE if name in kind._attributes]
    slots += ["end_lineno"] if issubclass(kind, ast.stmt) else []
    members = {"__slots__": tuple(slots), "__module__": __name__}
    return cast("type[ast.AST]", type(kind.__name__, (kind,), members))


def _is_made(kind: object) -> bool:
    """Whether nodes of this class stand in trees: operators and the like are shared anyway."""
    return isinstance(kind, type) and issubclass(kind, ast.AST) and bool(kind._fields)


_COMPACT: dict[type[ast.AST], type[ast.AST]] = {
    kind: _compact_class(kind) for kind in vars(ast).values() if _is_made(kind)
}


def compacted(root: N) -> N:
    """The tree in compact nodes; the old one is used up."""
    made = _empty(root)
    waiting: list[tuple[ast.AST, ast.AST]] = [(root, made)]
    numbers: dict[object, object] = {}  # a line is a number of its own in every node otherwise
    while waiting:
        node, copy = waiting.pop()
        is_statement = isinstance(node, ast.stmt)
        for name, value in vars(node).items():
            kept = value
            if name == "lineno" or (is_statement and name == "end_lineno"):
                kept = numbers.setdefault(value, value)
            elif name in _ENDS or (value is None and name in _RARE):
                continue
            elif type(value) is list:
                items = cast("list[object]", value)
                for index, item in enumerate(items):
                    if type(item) in _COMPACT:
                        items[index] = small = _empty(cast("ast.AST", item))
                        waiting.append((cast("ast.AST", item), small))
            elif isinstance(value, ast.AST) and type(value) in _COMPACT:
                kept = _empty(value)
                waiting.append((value, kept))
            setattr(copy, name, kept)
    return cast("N", made)


def _empty(node: ast.AST) -> ast.AST:
    kind = _COMPACT[type(node)]
    return kind.__new__(kind)


def of_both(handlers: Mapping[type[N], Callable[..., T]]) -> dict[type[N], Callable[..., T]]:
    """The handlers of nodes by their class, for nodes as they are parsed and for compact ones."""
    compact = {cast("type[N]", _COMPACT[kind]): one for kind, one in handlers.items()}
    return {**handlers, **compact}
