"""Making an object: a dataclass's fields bound at once, a constructor when it is needed."""

from __future__ import annotations

import ast

from shapecheck.static.attributes import read_named
from shapecheck.static.frames import Frame
from shapecheck.static.functions import Arguments, Keywords, argument_node, bind, passed
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.owners import DRAFT, TARGET, is_draft_flag
from shapecheck.static.stores import store_attribute
from shapecheck.static.symbols import Ownership
from shapecheck.static.values import UNKNOWN, Const, Instance, Plain, Value
from shapecheck.static.waiting import postpone
from shapecheck.static.wording import wording


def construct(
    frame: Frame,
    cls: ClassFacts,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.Call,
    *,
    complete: bool = True,
) -> Value:
    """A new object of a class of the project, its `__init__` or dataclass fields bound."""
    project = frame.machine.project
    init = _initializer(project.mro(cls))
    owned = _constructed_owner(frame, init, keywords, node, complete=complete)
    ref = frame.machine.allocate(frame, cls, owned or frame.machine.class_owner(cls), node)
    made = Instance(ref)
    if init is not None:
        env = bind(frame, init, made, arguments, keywords, node, complete=complete)
        postpone(frame, init, made, env)
        if ref.pending is not None and frame.machine.promises.shapes(project, cls):
            ref.pending()
        return made
    fields = [name for one in reversed(project.mro(cls)) for name in one.annotations]
    fields = list(dict.fromkeys(fields))
    given = dict(zip(fields, arguments, strict=False)) | keywords
    for name in fields:
        value = given.get(name)
        place: ast.expr = node
        if value is None:
            value = _field_default(project.mro(cls), name) if complete else UNKNOWN
        else:
            place = argument_node(node, name, fields.index(name))
            value = passed(frame, f"{cls.name}({name}=)", value, place, node)
        if value != UNKNOWN:
            store_attribute(frame, made, name, value, place)
    after = project.method(cls, "__post_init__")
    if after is not None and any(one.is_dataclass for one in project.mro(cls)):
        frame.machine.call(frame, after, made, (), {}, node)
    return made


def replaced(frame: Frame, value: Plain, changes: Keywords, node: ast.Call) -> Value:
    """`dataclasses.replace(value, ...)`: another object with the same fields but these."""
    if not isinstance(value, Instance) or value.ref.cls is None or not value.ref.cls.is_dataclass:
        return UNKNOWN
    order = reversed(frame.machine.project.mro(value.ref.cls))
    names = dict.fromkeys(name for one in order for name in one.annotations)
    kept = {
        name: read_named(frame, value, name, node.args[0]) for name in names if name not in changes
    }
    return construct(frame, value.ref.cls, (), kept | changes, node)


def _initializer(order: tuple[ClassFacts, ...]) -> FunctionFacts | None:
    """The `__init__` that runs: a dataclass has its own, whatever its bases define."""
    for cls in order:
        if "__init__" in cls.methods:
            return cls.methods["__init__"]
        if cls.is_dataclass:
            return None
    return None


def _field_default(order: tuple[ClassFacts, ...], name: str) -> Value:
    for cls in order:
        if name in cls.defaults:
            default = cls.defaults[name]
            return Const(default.value) if isinstance(default, ast.Constant) else UNKNOWN
    return UNKNOWN


def _constructed_owner(
    frame: Frame,
    function: FunctionFacts | None,
    keywords: Keywords,
    node: ast.Call,
    *,
    complete: bool,
) -> Ownership | None:
    span = frame.module.span(node)
    callee = wording(node.func)
    for name, value in keywords.items():
        if is_draft_flag(name):
            if value == Const(True):
                acting = frame.acting
                literal = isinstance(argument_node(node, name, 1 << 30), ast.Constant)
                if acting is not None and acting.owner == DRAFT and not literal:
                    reason = f"{acting.reason}; {callee} is made for it"
                    return Ownership(DRAFT, reason, acting.span)
                return Ownership(DRAFT, f"{callee} is called with {name}=True", span)
            if value == Const(False):
                return Ownership(TARGET, f"{callee} is called with {name}=False", span)
            return None
    if function is None or not complete:
        return None
    spec = function.node.args
    both = [*spec.posonlyargs, *spec.args]
    defaulted = [*both[len(both) - len(spec.defaults) :], *spec.kwonlyargs]
    defaults = [*spec.defaults, *spec.kw_defaults]
    for argument, default in zip(defaulted, defaults, strict=True):
        off = isinstance(default, ast.Constant) and default.value is False
        if off and is_draft_flag(argument.arg) and len(node.args) < len(both):
            return Ownership(TARGET, f"{callee} leaves {argument.arg} at False", span)
    return None
