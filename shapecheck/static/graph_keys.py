"""Keys under which captured graphs are kept, and the keys by which they are looked up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from shapecheck.static.facts import KeyFormulae
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.project import annotation_head
from shapecheck.static.walk import walk, walk_statements
from shapecheck.static.wording import wording

_PUTS = {"add", "append", "setdefault"}
_GETS = {"get", "pop"}
_MAX_INLINED = 8


@dataclass(frozen=True, slots=True)
class _Key:
    """A key as it is built: what it is made by, its fields, the function around it."""

    made_by: str
    fields: dict[str, ast.expr]
    function: FunctionFacts


def may_hold_keys(text: str) -> bool:
    """Whether a file is worth looking at for keys of graphs."""
    return "//" in text and ("capture" in text or "graph" in text)


def key_formulae(cls: ClassFacts) -> Iterator[KeyFormulae]:
    """Fields that hold a count where a key is stored, and that count divided where it is used.

    A number of tokens on one side and of requests on the other: the key is never found.
    """
    stored: dict[str, list[_Key]] = {}
    used: dict[str, list[_Key]] = {}
    for method in cls.methods.values():
        values = _assigned(method)
        for container, expression, stores in _accesses(method):
            key = _key(cls, method, expression, values)
            if key is not None:
                (stored if stores else used).setdefault(container, []).append(key)
    for container, keys in stored.items():
        for one in keys:
            for other in used.get(container, ()):
                yield from _differences(container, one, other)


def _differences(container: str, stored: _Key, used: _Key) -> Iterator[KeyFormulae]:
    if stored.made_by != used.made_by or not _same_constants(stored, used):
        return
    for name in stored.fields.keys() & used.fields.keys():
        for whole, divided in ((stored, used), (used, stored)):
            siblings = [field for field in whole.fields if field != name]
            if any(
                _is_whole(whole.fields[name], whole.fields[one])
                and _is_part(divided.fields[name], divided.fields[one])
                for one in siblings
                if one in divided.fields
            ):
                yield KeyFormulae(
                    container=container,
                    field=name,
                    whole=wording(whole.fields[name]),
                    divided=wording(divided.fields[name]),
                    span=stored.function.module.span(stored.fields[name]),
                    other=used.function.module.span(used.fields[name]),
                    where=stored.function.qualname,
                )


def _same_constants(one: _Key, other: _Key) -> bool:
    """Whether no field is one literal here and another there: those keys are of two kinds."""
    for name in one.fields.keys() & other.fields.keys():
        left, right = one.fields[name], other.fields[name]
        literals = isinstance(left, ast.Constant) and isinstance(right, ast.Constant)
        if literals and ast.dump(left) != ast.dump(right):
            return False
    return True


def _is_whole(field: ast.expr, sibling: ast.expr) -> bool:
    """The sibling's count itself, or that count limited by another."""
    if isinstance(field, ast.Call) and annotation_head(field.func) in ("min", "max"):
        return any(ast.dump(one) == ast.dump(sibling) for one in field.args)
    return ast.dump(field) == ast.dump(sibling) and not isinstance(field, ast.Constant)


def _is_part(field: ast.expr, sibling: ast.expr) -> bool:
    """The sibling's count divided by what is no literal 1."""
    return (
        isinstance(field, ast.BinOp)
        and isinstance(field.op, ast.FloorDiv)
        and ast.dump(field.left) == ast.dump(sibling)
        and not (isinstance(field.right, ast.Constant) and field.right.value == 1)
    )


def _accesses(method: FunctionFacts) -> Iterator[tuple[str, ast.expr, bool]]:
    """Every (container, key, whether it is stored) of a method; containers hang off `self`."""
    for node in walk(method.node):
        if isinstance(node, ast.Subscript) and _of_self(node.value):
            if not isinstance(node.slice, ast.Slice):
                yield wording(node.value), node.slice, isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and _of_self(node.comparators[0]):
            if isinstance(node.ops[0], (ast.In, ast.NotIn)):
                yield wording(node.comparators[0]), node.left, False
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            name, holder = node.func.attr, node.func.value
            if name in _PUTS | _GETS and _of_self(holder):
                yield wording(holder), node.args[0], name in _PUTS


def _of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _assigned(method: FunctionFacts) -> dict[str, ast.expr]:
    """What each local name is given, where that happens once."""
    values: dict[str, ast.expr] = {}
    seen: set[str] = set()
    for statement in walk_statements(method.node.body):
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For)):
            targets = [statement.target]
        for target in targets:
            for one in walk(target):
                if isinstance(one, ast.Name):
                    if one.id in seen:
                        values.pop(one.id, None)
                    elif isinstance(statement, ast.Assign) and one is target:
                        values[one.id] = statement.value
                    seen.add(one.id)
    return values


def _key(
    cls: ClassFacts, method: FunctionFacts, node: ast.expr, values: dict[str, ast.expr]
) -> _Key | None:
    """The fields of a key that is a call or a tuple, local names replaced by what they hold."""
    made = _inlined(node, values)
    if isinstance(made, ast.Tuple) and len(made.elts) > 1:
        fields = {f"field {at}": one for at, one in enumerate(made.elts, 1)}
        return _Key("tuple", {k: _inlined(v, values) for k, v in fields.items()}, method)
    if not isinstance(made, ast.Call) or any(isinstance(a, ast.Starred) for a in made.args):
        return None
    head = annotation_head(made.func)
    known = method.module.bindings.get(head)
    names = list(known.annotations) if isinstance(known, ClassFacts) else []
    fields = {
        names[at] if at < len(names) else f"argument {at + 1}": one
        for at, one in enumerate(made.args)
    }
    fields |= {one.arg: one.value for one in made.keywords if one.arg}
    if len(fields) < 2:
        return None
    return _Key(head, {k: _inlined(v, values) for k, v in fields.items()}, method)


def _inlined(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """A name as what it was given; the places stay those of the source."""
    for _ in range(_MAX_INLINED):
        if not (isinstance(node, ast.Name) and node.id in values):
            break
        given = values[node.id]
        if not isinstance(given, (ast.Call, ast.BinOp, ast.Name, ast.Tuple)):
            break
        if isinstance(given, ast.Call) and annotation_head(given.func) == "next":
            break
        node = given
    return node
