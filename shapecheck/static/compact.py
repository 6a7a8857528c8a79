"""Syntax trees in a third of the memory: what is kept of a file until the end of a run.

A node of Python's own parser keeps all it holds in a dict. A compact node is of a subclass of the
same class with a slot for each of it, so whoever asks with `isinstance` or by name sees no
difference. Where an expression ends is left out: nobody asks. The body of a function may wait as
text until somebody asks for it: of most that are imported nobody does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar, cast

from shapecheck.static.blocks import Block
from shapecheck.static.loader import Source, parse_source

N = TypeVar("N", bound=ast.AST)
T = TypeVar("T")

_PLACE = ("lineno", "col_offset")
_ENDS = {"end_lineno", "end_col_offset"}
_ENDS_OF_STATEMENTS = {"end_col_offset"}
# Nearly always None, as the class says: what is set nevertheless goes where Python puts it.
_RARE = {"kind", "type_comment"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class _Text:
    """A function as its place in the whole text; its first line is `line`."""

    whole: str
    start: int
    end: int
    line: int
    path: str

    def body(self) -> list[ast.stmt]:
        """The statements, in compact nodes."""
        # What is indented has to stand in something, on the line before.
        text = self.whole[self.start : self.end]
        inside = text.lstrip("\f")[:1].isspace()
        before = "\n" * (self.line - 2) + "if 1:\n" if inside else "\n" * (self.line - 1)
        statement = parse_source(Source(path=self.path, text=before + text)).body[0]
        function = cast("ast.If", statement).body[0] if inside else statement
        return compacted(cast("ast.FunctionDef", function)).body


def _body(node: Any) -> object:
    if isinstance(node.held, _Text):
        node.held = node.held.body()
    return node.held


def _hold(node: Any, body: object) -> None:
    node.held = body


def _compact_class(kind: type[ast.AST]) -> type[ast.AST]:
    slots = [name for name in kind._fields if name not in _RARE]
    slots += [name for name in _PLACE if name in kind._attributes]
    slots += ["end_lineno"] if issubclass(kind, ast.stmt) else []
    members: dict[str, object] = {"__module__": __name__}
    if kind in _FUNCTIONS:
        slots[slots.index("body")] = "held"
        members["body"] = property(_body, _hold)
    members["__slots__"] = tuple(slots)
    return cast("type[ast.AST]", type(kind.__name__, (kind,), members))


def _is_made(kind: object) -> bool:
    """Whether nodes of this class stand in trees: operators and the like are shared anyway."""
    return isinstance(kind, type) and issubclass(kind, ast.AST) and bool(kind._fields)


_COMPACT: dict[type, type[ast.AST]] = {
    kind: _compact_class(kind) for kind in vars(ast).values() if _is_made(kind)
}
_NOTHING: list[object] = []  # in place of every empty list: nobody changes a tree
_NAME = cast("type[ast.Name]", _COMPACT[ast.Name])


def compacted(root: N, apart: list[ast.FunctionDef] | None = None) -> N:
    """The tree in compact nodes; the old one is used up.

    The functions that `apart` then lists keep their bodies as they are, to be read and then packed.
    """
    waiting: list[tuple[object, ast.AST]] = []
    numbers: dict[int, int] = {}  # a line is a number of its own in every node otherwise

    def small(node: object) -> object:
        """The compact node, perhaps still empty; what is no node or shared is as it was."""
        if type(node) is ast.Name:  # every other node: it is worth no detour
            name = _NAME.__new__(_NAME)
            name.id, name.ctx = node.id, node.ctx
            name.lineno = numbers.setdefault(node.lineno, node.lineno)
            name.col_offset = node.col_offset
            return name
        kind = _COMPACT.get(type(node))
        if kind is None:
            return node
        empty = kind.__new__(kind)
        waiting.append((node, empty))
        return empty

    made = small(root)
    while waiting:
        node, copy = waiting.pop()
        if apart is not None and isinstance(node, _FUNCTIONS):
            function = cast("ast.FunctionDef", copy)
            apart.append(function)
            function.body = vars(node).pop("body")
        left_out = _ENDS_OF_STATEMENTS if isinstance(copy, ast.stmt) else _ENDS
        for name, value in vars(node).items():
            if name in left_out or (value is None and name in _RARE):
                continue
            kept: object = value
            if isinstance(value, list):
                items = cast("list[object]", value)
                items[:] = map(small, items)
                kept = items or _NOTHING
            elif type(value) is int:
                kept = numbers.setdefault(value, value)
            elif type(value) is not str:
                kept = small(value)
            setattr(copy, name, kept)
    return cast("N", made)


def pack(functions: Iterable[ast.FunctionDef], block: Block, path: str) -> None:
    """Keep the bodies of these functions of a definition as text until somebody asks for them."""
    lengths = (len(line) + 1 for line in block.text.split("\n"))
    starts = list(accumulate(lengths, initial=block.start))
    for one in functions:
        first = min(node.lineno for node in (one, *one.decorator_list))
        start = starts[first - 1 - block.before]
        end = starts[cast("int", one.end_lineno) - block.before] - 1
        _hold(one, _Text(block.whole, start, end, first, path))


def of_both(handlers: Mapping[type[N], Callable[..., T]]) -> dict[type[N], Callable[..., T]]:
    """The handlers of nodes by their class, for nodes as they are parsed and for compact ones."""
    compact = {cast("type[N]", _COMPACT[kind]): one for kind, one in handlers.items()}
    return {**handlers, **compact}
