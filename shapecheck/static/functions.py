"""Calling a function of the project: arguments bound, hand-overs noted, the body run."""

from __future__ import annotations

import ast

from shapecheck.static.changes import forget_changed, handed_over
from shapecheck.static.contracts.keeping import (
    keep_parameter,
    promised_parameter,
    promised_result,
)
from shapecheck.static.declared import declared_value
from shapecheck.static.facts import Pass
from shapecheck.static.frames import Frame, State
from shapecheck.static.guards import last_name
from shapecheck.static.index import FunctionFacts
from shapecheck.static.machine import MAX_DEPTH
from shapecheck.static.named import count_by_name, name_owner
from shapecheck.static.owners import converts_to, is_model_call
from shapecheck.static.project import annotation_head
from shapecheck.static.summaries import Summary, holds_object, recalled, summary_key
from shapecheck.static.symbols import Ownership, Step, owners_of
from shapecheck.static.trails import has_trail, with_step
from shapecheck.static.unfollowed import forget_stores
from shapecheck.static.unions import lift
from shapecheck.static.units import Birth
from shapecheck.static.values import (
    NONE,
    UNKNOWN,
    Alternative,
    Axis,
    ClassValue,
    Const,
    Instance,
    Mapping,
    ObjectRef,
    Plain,
    Size,
    Tensor,
    Union,
    Unknown,
    Value,
    plain_values,
)

Arguments = tuple[Value, ...]
Keywords = dict[str, Value]


def call_function(
    frame: Frame,
    function: FunctionFacts,
    receiver: Value | None,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.expr,
    *,
    scope: dict[str, Value] | None = None,
    complete: bool = True,
) -> Value:
    """The result of interpreting a function of the project with these arguments.

    Where they are not `complete`, a star among them may give any other parameter something.
    """
    machine = frame.machine
    too_deep = frame.depth >= MAX_DEPTH
    machine.cuts += too_deep
    if (
        too_deep
        or function in frame.stack
        or machine.budget <= 0
        or (_output_owner(function, receiver) and not _is_open(frame, function, receiver))
    ):
        if too_deep or machine.budget <= 0 or function in frame.stack:
            given = () if receiver is None else (receiver,)
            forget_stores(frame, function, (*given, *arguments, *keywords.values()))
        if function in frame.stack:
            machine.reach.outermost = min(machine.reach.outermost, frame.stack.index(function))
        promised = promised_result(frame, function)
        return _not_followed(function, receiver) if promised is None else promised
    env = bind(frame, function, receiver, arguments, keywords, node, complete=complete)
    frame.show_names()
    key = None if scope is not None else summary_key(function, receiver, env)
    known = recalled(frame, key)
    if known is not None:
        # It is as dear as it was, so that no result hangs on who called it first.
        allowed = machine.allowed(env)
        machine.budget -= min(known.cost, allowed)
        machine.cuts += known.cost >= allowed
        result = known.result if known.cost < allowed else UNKNOWN
        return _returned(frame, function, result, node)
    inner = Frame(
        machine,
        function.module,
        function,
        function.cls,
        State(env, frame.state.heap),
        frame.depth + 1,
        (*frame.stack, function),
        scope if scope is not None else machine.scope_of(function),
        receiver,
        (*frame.calls, id(node)),
        list(frame.guards),
        acting=_owner_at_work(receiver) or frame.acting,
        handed=handed_over((*env.values(), *(scope or {}).values())),
    )
    if key is None:
        machine.reach.add(inner.depth, (function,))
        machine.basis.add(function.body)
        result, whole = machine.run_call(inner)
        frame.state.heap = inner.state.heap
        if not whole:
            forget_stores(frame, function, env.values())
        forget_changed(frame, inner.changed)
        return _returned(frame, function, result, node)
    before, cuts, left = frame.state.heap.log, machine.cuts, machine.budget
    birth = Birth()
    with machine.giving(birth, function.body), machine.apart() as reach:
        reach.add(inner.depth, (function,))
        result, _ = machine.run_call(inner)
    frame.state.heap = inner.state.heap
    forget_changed(frame, inner.changed)
    stores = frame.state.heap.log is not before or inner.changed
    whole = machine.cuts == cuts and reach.outermost >= len(frame.stack)
    if whole and not stores and not holds_object(result):
        machine.summaries[key] = Summary(
            result=result,
            basis=birth.basis,
            cost=left - machine.budget,
            height=reach.depth - frame.depth,
            followed=frozenset(reach.followed),
            witness=machine.unit if reach.sees else None,
        )
    return _returned(frame, function, result, node)


def _returned(frame: Frame, function: FunctionFacts, value: Value, node: ast.expr) -> Value:
    """The result as the caller has it: a size that it carries came back at this call."""
    if function.kind == "property":
        return value
    owner = converts_to(function.name)
    if owner:
        value = lift(lambda plain: _converted(plain, owner), value)
    if not has_trail(value):
        return value
    return with_step(value, Step("returned", function.qualname, frame.module.span(node)))


def _converted(plain: Plain, owner: str) -> Plain:
    """The tensor without the axes of the other model: those were turned into this one's."""
    if not isinstance(plain, Tensor):
        return plain

    def kept(axis: Axis) -> Axis:
        return axis if axis is not None and owners_of(axis.poly) <= {"", owner} else None

    dims = None if plain.dims is None else tuple(kept(axis) for axis in plain.dims)
    return Tensor(dims, kept(plain.last), plain.dtype)


def _owner_at_work(receiver: Value | None) -> Ownership | None:
    return receiver.ref.owned if isinstance(receiver, Instance) else None


def _is_self(frame: Frame, receiver: Value | None) -> bool:
    own = frame.receiver
    return isinstance(own, Instance) and isinstance(receiver, Instance) and own.ref is receiver.ref


def _is_open(frame: Frame, function: FunctionFacts, receiver: Value | None) -> bool:
    """Whether the body of a model's call is followed: its own, and that of a module built here."""
    if _is_self(frame, receiver):
        return True
    if not isinstance(receiver, Instance) or function.name not in ("forward", "__call__"):
        return False
    ref, project = receiver.ref, frame.machine.project
    if ref.cls is None or ref.site is None:
        return False
    bases = (base for one in project.mro(ref.cls) for base in one.node.bases)
    return any(annotation_head(base) == "Module" for base in bases)


def _output_owner(function: FunctionFacts, receiver: Value | None) -> Ownership | None:
    """Whose output a method returns: what a model computes is the model's, unseen."""
    if isinstance(receiver, Instance) and is_model_call(function.name):
        return receiver.ref.owned
    return None


def _not_followed(function: FunctionFacts, receiver: Value | None) -> Value:
    owned = _output_owner(function, receiver)
    return Unknown(owned) if owned else UNKNOWN


def bind(
    frame: Frame,
    function: FunctionFacts,
    receiver: Value | None,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.expr,
    *,
    complete: bool = True,
) -> dict[str, Value]:
    """The local names at the start of a call."""
    spec = function.node.args
    names = [*spec.posonlyargs, *spec.args]
    env: dict[str, Value] = {}
    skip = 0
    if receiver is not None and names and function.kind != "static":
        env[names[0].arg] = receiver
        skip = 1
    parameters = [*names[skip:], *spec.kwonlyargs]
    promises = frame.machine.promises
    for index, argument in enumerate(parameters):
        name = argument.arg
        positional = index < len(names) - skip
        if positional and index < len(arguments):
            value = arguments[index]
        elif name in keywords:
            value = keywords[name]
        elif complete:
            env[name] = _default(spec, index + skip)
            continue
        else:
            value = UNKNOWN
        promise = promises.of_parameter(function, name)
        if promise is not None or _has_sizes(value):
            place = argument_node(node, name, index if positional else 1 << 30)
            cell = f"{_cell_owner(function, receiver)}({name}=)"
            value = passed(frame, cell, value, place, node)
            value = keep_parameter(frame, promise, cell, value, place)
        env[name] = _typed(frame, function, argument, value)
    if spec.vararg:
        env[spec.vararg.arg] = UNKNOWN
    if spec.kwarg:
        named = {one.arg for one in parameters}
        rest = {name: value for name, value in keywords.items() if name not in named}
        env[spec.kwarg.arg] = Mapping(tuple(rest.values()), tuple(rest) if complete else None)
    return env


def _cell_owner(function: FunctionFacts, receiver: Value | None) -> str:
    cls = function.cls
    if isinstance(receiver, ClassValue):
        cls = receiver.cls
    elif isinstance(receiver, Instance) and receiver.ref.cls is not None:
        cls = receiver.ref.cls
    if cls is None:
        return function.qualname
    return cls.name if function.name == "__init__" else f"{cls.name}.{function.name}"


def _typed(frame: Frame, function: FunctionFacts, argument: ast.arg, value: Value) -> Value:
    """An unknown argument still is what the parameter's annotation and name say."""
    if not isinstance(value, Unknown):
        return value
    owned = value.owned or name_owner(frame, argument.arg, argument)
    return parameter_value(frame, function, argument, owned)


def parameter_value(
    frame: Frame, function: FunctionFacts, argument: ast.arg, owned: Ownership | None
) -> Value:
    """What a parameter holds by its annotation and name: an object, if nothing says otherwise."""
    promised = promised_parameter(frame, function, argument.arg)
    if promised is not None:
        return promised
    if argument.annotation is None or last_name(argument.annotation) == "int":
        count = count_by_name(frame, argument.arg, argument)
        if count is not None:
            return count
    declared = declared_value(
        frame, function.module, argument.arg, argument.annotation, owned, argument
    )
    if isinstance(declared, Unknown) and argument.annotation is None:
        # Somebody's object: what is stored in it on this path is read from it again.
        return Instance(ObjectRef(None, declared.owned, None, entry=True, label=argument.arg))
    return declared


def _default(spec: ast.arguments, position: int) -> Value:
    """The literal default of a parameter by its position, those by keyword counted on."""
    first_keyword = len(spec.posonlyargs) + len(spec.args)
    if position >= first_keyword:
        default = spec.kw_defaults[position - first_keyword]
    else:
        number = position - first_keyword + len(spec.defaults)
        default = spec.defaults[number] if number >= 0 else None
    if isinstance(default, ast.Constant):
        return NONE if default.value is None else Const(default.value)
    return UNKNOWN


def passed(frame: Frame, cell: str, value: Value, place: ast.expr, call: ast.expr) -> Value:
    """The value as the parameter sees it; a hand-over of an owned size is noted."""
    sizes = [plain for plain in plain_values(value) if isinstance(plain, Size)]
    if not any(size.poly.symbols() for size in sizes):
        return value
    span = frame.module.span(place)
    facts = frame.machine.facts
    if any(symbol.owner for size in sizes for symbol in size.poly.symbols()):
        facts.passes.setdefault(
            (cell, span),
            Pass(
                cell=cell,
                value=_sizes_of(value),
                span=span,
                call=frame.module.span(call),
                caller=frame.where,
            ),
        )
    return with_step(value, Step("passed", cell, span, cell))


def _has_sizes(value: Value) -> bool:
    """Whether `passed` may say more than the value itself."""
    return isinstance(value, (Size, Union))


def _sizes_of(value: Value) -> Value:
    """The value with nothing known but its sizes: plain data."""
    if not isinstance(value, Union):
        return value
    return Union(
        tuple(
            one if isinstance(one.value, Size) else Alternative(UNKNOWN, one.guards)
            for one in value.alternatives
        )
    )


def argument_node(node: ast.expr, name: str, position: int) -> ast.expr:
    """The source of an argument, else the whole call."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == name:
                return keyword.value
        if position < len(node.args):
            return node.args[position]
    return node
