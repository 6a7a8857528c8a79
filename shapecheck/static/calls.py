"""Calls: constructors, functions of the project, operators, and what a model returns."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.attributes import declared_value, name_owner, read_named, store_attribute
from shapecheck.static.facts import Pass
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.machine import MAX_DEPTH, Frame, State, join_heaps
from shapecheck.static.ops import operator_of
from shapecheck.static.owners import DRAFT, TARGET, is_draft_flag, is_model_call
from shapecheck.static.shapes import apply
from shapecheck.static.symbols import Ownership, Step
from shapecheck.static.values import (
    NONE,
    UNKNOWN,
    Alternative,
    ClassValue,
    Const,
    External,
    FunctionValue,
    Instance,
    Plain,
    Sequence,
    Shape,
    Size,
    Tensor,
    Union,
    Unknown,
    Value,
    alternatives,
    combine,
    join,
    lift,
    plain_values,
    union,
    with_step,
)

Arguments = tuple[Value, ...]
Keywords = dict[str, Value]
_MAX_RECEIVERS = 3


def evaluate_call(frame: Frame, node: ast.Call) -> Value:
    """The value of a call expression."""
    from shapecheck.static.expressions import evaluate

    if isinstance(node.func, ast.Name) and node.func.id == "super":
        return _super(frame, node)
    callee = evaluate(frame, node.func)
    arguments: list[Value] = []
    complete = True
    for given in node.args:
        if isinstance(given, ast.Starred):
            value = evaluate(frame, given.value)
            if isinstance(value, Sequence):
                arguments.extend(value.items)
            elif isinstance(value, Shape) and value.tensor.dims is not None:
                arguments.extend(axis or UNKNOWN for axis in value.tensor.dims)
            else:
                complete = False
        else:
            arguments.append(evaluate(frame, given))
    keywords: Keywords = {}
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is None:
            complete = False
        else:
            keywords[keyword.arg] = value
    given = tuple(arguments)
    if not isinstance(callee, Union):
        return _call(frame, callee, given, keywords, node, complete=complete)
    return _call_each(frame, callee, given, keywords, node, complete=complete)


def _call_each(
    frame: Frame,
    callee: Union,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.Call,
    *,
    complete: bool,
) -> Value:
    """The same call on several possible receivers: each starts from the same heap."""
    results: list[Alternative] = []
    start, heap = frame.state.heap, None
    for choice in callee.alternatives[:_MAX_RECEIVERS]:
        frame.state.heap = dict(start)
        made = _call(frame, choice.value, arguments, keywords, node, complete=complete)
        results.extend(
            Alternative(one.value, (*choice.guards, *one.guards)) for one in alternatives(made)
        )
        after = frame.state.heap
        heap = after if heap is None else join_heaps(heap, after, None)
    frame.state.heap = heap if heap is not None else start
    return union(results)


def _call(
    frame: Frame,
    callee: Plain,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.Call,
    *,
    complete: bool,
) -> Value:
    if isinstance(callee, FunctionValue):
        return call_function(
            frame, callee.function, callee.receiver, arguments, keywords, node, scope=callee.scope
        )
    if isinstance(callee, ClassValue):
        return construct(frame, callee.cls, arguments, keywords, node, complete=complete)
    if isinstance(callee, Instance):
        return _call_instance(frame, callee, arguments, keywords, node)
    if isinstance(callee, External):
        return _external(frame, callee, arguments, keywords, node)
    if isinstance(callee, Unknown):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if callee.owned is not None and (is_model_call(name) or not name):
            return Unknown(callee.owned)
    return UNKNOWN


def _call_instance(
    frame: Frame, callee: Instance, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    cls = callee.ref.cls
    if cls is not None:
        for name in ("__call__", "forward"):
            method = frame.machine.project.method(cls, name)
            if method is not None:
                made = call_function(frame, method, callee, arguments, keywords, node)
                return _owned_output(made, callee.ref.owned)
    return Unknown(callee.ref.owned) if callee.ref.owned else UNKNOWN


def _owned_output(value: Value, owned: Ownership | None) -> Value:
    if owned is None:
        return value
    return lift(lambda one: Unknown(owned) if one == UNKNOWN else one, value)


def _super(frame: Frame, node: ast.Call) -> Value:
    receiver, cls = frame.receiver, frame.cls
    if receiver is None or cls is None:
        return UNKNOWN
    return External("super", Instance(receiver.ref) if isinstance(receiver, Instance) else UNKNOWN)


def _external(
    frame: Frame, callee: External, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    name = callee.name
    if name.startswith("super."):
        return _call_super(frame, callee, name[6:], arguments, keywords, node)
    if name.startswith("builtins."):
        return _builtin(frame, name[9:], arguments, keywords, node)
    operator = operator_of(name)
    if operator is None:
        return UNKNOWN
    inputs = (callee.receiver, *arguments) if callee.receiver is not None else arguments
    inputs = tuple(_collapse(value) for value in inputs)
    names = list(keywords)

    def run(values: tuple[Plain, ...]) -> Value:
        split = len(values) - len(names)
        return apply(
            frame, operator, values[:split], dict(zip(names, values[split:], strict=True)), node
        )

    return combine(run, *inputs, *(keywords[one] for one in names), under=frame.guards)


def _collapse(value: Value) -> Value:
    """A sequence with unions inside, as a union of sequences."""
    if isinstance(value, Sequence) and any(len(alternatives(item)) > 1 for item in value.items):
        return combine(Sequence, *value.items)
    return value


def _call_super(
    frame: Frame,
    callee: External,
    name: str,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.Call,
) -> Value:
    receiver = callee.receiver
    if not isinstance(receiver, Instance) or receiver.ref.cls is None or frame.cls is None:
        return UNKNOWN
    order = frame.machine.project.mro(receiver.ref.cls)
    start = order.index(frame.cls) + 1 if frame.cls in order else 0
    for cls in order[start:]:
        if name in cls.methods:
            return call_function(frame, cls.methods[name], receiver, arguments, keywords, node)
    return UNKNOWN


def _builtin(
    frame: Frame, name: str, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if name == "getattr" and len(arguments) >= 2:
        return _getattr(frame, arguments, node)
    if name == "hasattr" and len(arguments) == 2:
        return _hasattr(frame, arguments[0], arguments[1])
    if name in ("int", "cast") and arguments:
        return arguments[-1]
    if name == "len" and len(arguments) == 1:
        return lift(_len, arguments[0])
    if name in ("tuple", "list") and len(arguments) == 1:
        return lift(_as_sequence, arguments[0])
    if name in ("max", "min") and len(arguments) == 2:
        same = arguments[0] == arguments[1]
        return arguments[0] if same else UNKNOWN
    return UNKNOWN


def _getattr(frame: Frame, arguments: Arguments, node: ast.Call) -> Value:
    attribute = arguments[1]
    if not isinstance(attribute, Const) or not isinstance(attribute.value, str):
        return UNKNOWN
    found = read_named(frame, arguments[0], attribute.value, node)
    if len(arguments) == 3 and not any(isinstance(one, Size) for one in plain_values(found)):
        return join(found, arguments[2])
    # The default is declared equal to the attribute: it is no second origin.
    return found


def _hasattr(frame: Frame, value: Value, attribute: Value) -> Value:
    """True where the class is seen to have it; an absence is never certain."""
    if (
        isinstance(value, Instance)
        and isinstance(attribute, Const)
        and value.ref.cls is not None
        and not value.ref.entry
    ):
        name = str(attribute.value)
        for cls in frame.machine.project.mro(value.ref.cls):
            if name in cls.methods or name in cls.stores or name in cls.annotations:
                return Const(True)
    return UNKNOWN


def _len(value: Plain) -> Value:
    if isinstance(value, Sequence):
        return Size(Poly.constant(len(value.items)))
    if isinstance(value, Tensor):
        return value.axis(0) or UNKNOWN
    return UNKNOWN


def _as_sequence(value: Plain) -> Value:
    if isinstance(value, Shape):
        if value.tensor.dims is None:
            return UNKNOWN
        return Sequence(tuple(axis or UNKNOWN for axis in value.tensor.dims))
    return value if isinstance(value, Sequence) else UNKNOWN


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
        _postpone(frame, init, made, bind(frame, init, made, arguments, keywords, node))
        return made
    fields = [name for one in reversed(project.mro(cls)) for name in one.annotations]
    fields = list(dict.fromkeys(fields))
    given = dict(zip(fields, arguments, strict=False)) | keywords
    for name in fields:
        value = given.get(name)
        if value is None:
            value = _field_default(project.mro(cls), name) if complete else UNKNOWN
        else:
            place = _argument_node(node, name, fields.index(name))
            value = _passed(frame, f"{cls.name}({name})", value, place)
        if value != UNKNOWN:
            store_attribute(frame, made, name, value, node)
    return made


def _initializer(order: tuple[ClassFacts, ...]) -> FunctionFacts | None:
    """The `__init__` that runs: a dataclass has its own, whatever its bases define."""
    for cls in order:
        if "__init__" in cls.methods:
            return cls.methods["__init__"]
        if cls.is_dataclass:
            return None
    return None


def _postpone(frame: Frame, init: FunctionFacts, made: Instance, env: dict[str, Value]) -> None:
    """Let the constructor wait until somebody reads a field: most are never asked."""
    if init in frame.stack:
        return
    depth, stack, heap = frame.depth + 1, (*frame.stack, init), frame.state.heap
    calls = (*frame.calls, id(made.ref))

    def run() -> None:
        machine = frame.machine
        made.ref.pending = None
        if depth >= MAX_DEPTH or machine.budget <= 0:
            return
        state = State(env, dict(heap))
        machine.run_body(
            Frame(machine, init.module, init, init.cls, state, depth, stack, None, made, calls)
        )

    made.ref.pending = run


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
    callee = " ".join(ast.unparse(node.func).split())
    for name, value in keywords.items():
        if is_draft_flag(name):
            if value == Const(True):
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


def _argument_node(node: ast.expr, name: str, position: int) -> ast.expr:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == name:
                return keyword.value
        if position < len(node.args):
            return node.args[position]
    return node


def _passed(frame: Frame, cell: str, value: Value, place: ast.expr) -> Value:
    """The value as the parameter sees it; a hand-over of an owned size is noted."""
    sizes = [plain for plain in plain_values(value) if isinstance(plain, Size)]
    if not any(size.poly.symbols() for size in sizes):
        return value
    span = frame.module.span(place)
    facts = frame.machine.facts
    if any(symbol.owner for size in sizes for symbol in size.poly.symbols()):
        facts.passes.setdefault(
            (cell, span), Pass(cell=cell, value=value, span=span, caller=frame.where)
        )
    return with_step(value, Step("passed", cell, span, cell))


def call_function(
    frame: Frame,
    function: FunctionFacts,
    receiver: Value | None,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.expr,
    *,
    scope: dict[str, Value] | None = None,
) -> Value:
    """The result of interpreting a function of the project with these arguments."""
    machine = frame.machine
    if (
        frame.depth >= MAX_DEPTH
        or function in frame.stack
        or machine.budget <= 0
        or (_output_owner(function, receiver) and not _is_self(frame, receiver))
    ):
        return _not_followed(function, receiver)
    env = bind(frame, function, receiver, arguments, keywords, node)
    inner = Frame(
        machine,
        function.module,
        function,
        function.cls,
        State(env, frame.state.heap),
        frame.depth + 1,
        (*frame.stack, function),
        scope,
        receiver,
        (*frame.calls, id(node)),
        list(frame.guards),
    )
    result = machine.run_body(inner)
    frame.state.heap = inner.state.heap
    return result


def _is_self(frame: Frame, receiver: Value | None) -> bool:
    own = frame.receiver
    return isinstance(own, Instance) and isinstance(receiver, Instance) and own.ref is receiver.ref


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
) -> dict[str, Value]:
    """The local names at the start of a call."""
    spec = function.node.args
    names = [*spec.posonlyargs, *spec.args]
    env: dict[str, Value] = {}
    skip = 0
    if receiver is not None and names and function.kind != "static":
        env[names[0].arg] = receiver
        skip = 1
    owner_name = _cell_owner(function, receiver)
    for index, argument in enumerate([*names[skip:], *spec.kwonlyargs]):
        name = argument.arg
        positional = index < len(names) - skip
        if positional and index < len(arguments):
            value = arguments[index]
        elif name in keywords:
            value = keywords[name]
        else:
            env[name] = _default(function, argument)
            continue
        place = _argument_node(node, name, index if positional else 1 << 30)
        value = _passed(frame, f"{owner_name}({name}=)", value, place)
        env[name] = _typed(frame, function, argument, value)
    if spec.vararg:
        env[spec.vararg.arg] = UNKNOWN
    if spec.kwarg:
        env[spec.kwarg.arg] = UNKNOWN
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
    declared = declared_value(
        frame, function.module, argument.arg, argument.annotation, owned, argument
    )
    return declared if declared != UNKNOWN else value


def _default(function: FunctionFacts, argument: ast.arg) -> Value:
    spec = function.node.args
    both = [*spec.posonlyargs, *spec.args]
    pairs = [
        *zip(both[len(both) - len(spec.defaults) :], spec.defaults, strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    for candidate, default in pairs:
        if candidate is argument and isinstance(default, ast.Constant):
            return NONE if default.value is None else Const(default.value)
    return UNKNOWN
