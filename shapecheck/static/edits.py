"""Two versions of a file: which bodies differ, and where every other line has gone."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shapecheck.static.index import ClassFacts, FunctionFacts, Import, ModuleFacts, index_module
from shapecheck.static.loader import Source, UnreadableFileError, parse_source, split_lines
from shapecheck.static.prefilter import Weight
from shapecheck.static.project import module_name
from shapecheck.static.units import Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What changed in a file: some bodies, all between two lines that moved by a distance."""

    bodies: frozenset[Body]
    first: int
    last: int
    distance: int

    def line(self, old: int) -> int:
        """Where a line of the old text is; KeyError for one that was edited."""
        if old < self.first:
            return old
        if old <= self.last:
            raise KeyError(old)
        return old + self.distance


def compare(old: str, new: str, *, path: str, weigh: Callable[[str], Weight]) -> Edit | None:
    """The edit between two texts; None where more than bodies changed, or what they define."""
    try:
        before, after = (_indexed(text, path) for text in (old, new))
    except (UnreadableFileError, RecursionError):
        return None
    if len(before.functions) != len(after.functions):
        return None
    lines, other = split_lines(old), split_lines(new)
    bodies: set[Body] = set()
    for one, two in zip(before.functions, after.functions, strict=True):
        texts = _text(one, lines), _text(two, other)
        if one.qualname != two.qualname or weigh(texts[0]) != weigh(texts[1]):
            return None
        if texts[0] != texts[1]:
            if _makes_its_own(one) or _makes_its_own(two) or _stored_by(one) != _stored_by(two):
                return None
            bodies.add((path, one.qualname))
    if _outline(before) != _outline(after):
        return None
    first = next(
        (number for number, (a, b) in enumerate(zip(lines, other, strict=False)) if a != b),
        min(len(lines), len(other)),
    )
    same = 0
    while same < min(len(lines), len(other)) - first and lines[-1 - same] == other[-1 - same]:
        same += 1
    return Edit(
        bodies=frozenset(bodies),
        first=first + 1,
        last=len(lines) - same,
        distance=len(other) - len(lines),
    )


def _makes_its_own(function: FunctionFacts) -> bool:
    """Whether a constructor names its own class: what it leaves may then rest on itself."""
    *_, cls, name = ("", *function.qualname.split("."))
    nodes = ast.walk(function.node) if name in ("__init__", "__post_init__") else ()
    return any(isinstance(node, ast.Name) and node.id == cls for node in nodes)


def _stored_by(function: FunctionFacts) -> frozenset[str]:
    """The names of the fields that a function stores, of whatever objects: others read them."""
    nodes = list(ast.walk(function.node))
    set_ = (one.args[1] for one in nodes if isinstance(one, ast.Call) and _is_setattr(one))
    named = (one.value for one in set_ if isinstance(one, ast.Constant))
    stored = (one for one in nodes if isinstance(one, ast.Attribute))
    return frozenset(
        (*(one.attr for one in stored if isinstance(one.ctx, ast.Store)), *map(str, named))
    )


def _is_setattr(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3


def _indexed(text: str, path: str) -> ModuleFacts:
    tree = parse_source(Source(path=path, text=text))
    name, is_package = module_name(Path(path), Path())
    return index_module(tree, name=name, path=path, is_package=is_package, lines=0)


def _text(function: FunctionFacts, lines: list[str]) -> str:
    return "\n".join(lines[function.node.lineno - 1 : function.node.end_lineno])


def _outline(module: ModuleFacts) -> list[str]:
    """Everything but bodies: what the names stand for, and what the classes are made of."""
    for function in module.functions:
        function.node.body = []
    outline = [f"{name}={_bound(bound)}" for name, bound in module.bindings.items()]
    for cls in module.classes:
        fields = {name: ast.dump(node) for name, node in cls.annotations.items()}
        flag = cls.draft_flag and cls.draft_flag[0]
        outline.append(f"{ast.dump(cls.node)} {fields} {cls.stores} {flag}")
    return outline + [ast.dump(function.node) for function in module.functions]


def _bound(bound: object) -> str:
    if isinstance(bound, ast.expr):
        return ast.dump(bound)
    if isinstance(bound, (FunctionFacts, ClassFacts)):
        return bound.name
    return str(bound) if isinstance(bound, Import) else ""
