"""Calls: what the callee is, and who computes the result."""

from __future__ import annotations

import ast

from shapecheck.static.builtin import call_builtin
from shapecheck.static.contracts.sizes import size_by_key
from shapecheck.static.frames import Frame
from shapecheck.static.functions import Arguments, Keywords, call_function
from shapecheck.static.getters import GET, read_getter
from shapecheck.static.heap import Heap, join_heaps
from shapecheck.static.kernel_pairs import note_pairs
from shapecheck.static.lists import CHANGES, grow_list
from shapecheck.static.mappings import DICT_CHANGES, call_mapping, change_mapping
from shapecheck.static.named import size_of_entry
from shapecheck.static.objects import construct, replaced
from shapecheck.static.operators.apply import apply
from shapecheck.static.operators.layers import LAYERS, call_layer, chained, make_layer
from shapecheck.static.operators.table import operator_of
from shapecheck.static.owners import is_model_call, size_of_name
from shapecheck.static.shapes import axes_as_values
from shapecheck.static.stores import store_attribute
from shapecheck.static.symbols import Ownership
from shapecheck.static.unions import combine, lift, union
from shapecheck.static.values import (
    UNKNOWN,
    Alternative,
    ClassValue,
    Const,
    External,
    FunctionValue,
    Instance,
    Layer,
    Mapping,
    Partial,
    Plain,
    Sequence,
    Shape,
    Tensor,
    Union,
    Unknown,
    Value,
    alternatives,
)

_MAX_RECEIVERS = 3
# What they make is the tensor, or the list or dict of modules, that they are given.
_SAME = {
    *("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"),
    *("torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList"),
}
_PARTIAL = {"functools.partial", "functools.partialmethod"}


def evaluate_call(frame: Frame, node: ast.Call) -> Value:
    """The value of a call expression."""
    evaluate = frame.machine.evaluate
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        return _super(frame, node)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        named = size_by_key(frame, node.func.value, node.args[0], node)
        if named is not None:
            return named
        key = node.args[0]
        if isinstance(key, ast.Constant) and size_of_name(str(key.value)):
            holder = evaluate(frame, node.func.value)
            entry = size_of_entry(frame, holder, key, node.func.value, node)
            if entry is not None:
                return entry
    callee = evaluate(frame, node.func)
    arguments: list[Value] = []
    complete = True
    for given in node.args:
        if isinstance(given, ast.Starred):
            value = evaluate(frame, given.value)
            if isinstance(value, Sequence):
                arguments.extend(value.items)
            elif isinstance(value, Shape) and value.tensor.dims is not None:
                arguments.extend(axes_as_values(value.tensor.dims))
            else:
                # How many it stands for is not known, so neither is where the next ones go.
                complete = False
                arguments.append(UNKNOWN)
                break
        else:
            arguments.append(evaluate(frame, given))
    keywords: Keywords = {}
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is None:
            entries = value.items() if isinstance(value, Mapping) else None
            complete = complete and entries is not None
            keywords |= {str(name): one for name, one in (entries or {}).items()}
        else:
            keywords[keyword.arg] = value
    given = tuple(arguments)
    note_pairs(frame, given, keywords, node)
    method = node.func
    if not isinstance(method, ast.Attribute):
        return _call_any(frame, callee, given, keywords, node, complete=complete)
    if method.attr == "register_buffer":
        _register(frame, evaluate(frame, method.value), given, keywords, node)
    if method.attr in CHANGES and grow_list(frame, node, method, given):
        return UNKNOWN
    made = _call_any(frame, callee, given, keywords, node, complete=complete)
    if method.attr in DICT_CHANGES:
        change_mapping(frame, node, method, given, keywords)
    return read_getter(frame, node, method, made) if method.attr.startswith(GET) else made


def _call_any(
    frame: Frame,
    callee: Value,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.Call,
    *,
    complete: bool,
) -> Value:
    if not isinstance(callee, Union):
        return _call(frame, callee, arguments, keywords, node, complete=complete)
    return _call_each(frame, callee, arguments, keywords, node, complete=complete)


def _register(
    frame: Frame, module: Value, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> None:
    """`self.register_buffer("name", tensor)` stores an attribute."""
    named = (*arguments, *keywords.values())
    if len(named) >= 2 and isinstance(named[0], Const) and isinstance(named[0].value, str):
        store_attribute(frame, module, named[0].value, named[1], node)


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
    start = frame.state.heap
    heap: Heap | None = None
    for choice in callee.alternatives[:_MAX_RECEIVERS]:
        frame.state.heap = start.fork()
        made = _call(frame, choice.value, arguments, keywords, node, complete=complete)
        results.extend(
            Alternative(one.value, (*choice.guards, *one.guards)) for one in alternatives(made)
        )
        after = frame.state.heap
        heap = after if heap is None else join_heaps(heap, after, None)
    frame.state.heap = heap if heap is not None else start
    results += [
        Alternative(UNKNOWN, choice.guards) for choice in callee.alternatives[_MAX_RECEIVERS:]
    ]
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
    if isinstance(callee, External):
        made = _external(frame, callee, arguments, keywords, node, complete=complete)
        # Behind a star whose length is not known there may be more axes.
        return made if complete else lift(_of_unknown_shape, made)
    if isinstance(callee, FunctionValue):
        function, receiver, scope = callee.function, callee.receiver, callee.scope
        return call_function(
            frame, function, receiver, arguments, keywords, node, scope=scope, complete=complete
        )
    if isinstance(callee, ClassValue):
        return construct(frame, callee.cls, arguments, keywords, node, complete=complete)
    if isinstance(callee, Partial):
        given = (*callee.arguments, *arguments)
        named = dict(callee.keywords) | keywords
        return _call_any(frame, callee.callee, given, named, node, complete=complete)
    if isinstance(callee, Instance):
        return _call_instance(frame, callee, arguments, keywords, node, complete=complete)
    if isinstance(callee, Layer):
        inputs = arguments[:1] or tuple(keywords.values())[:1] or (UNKNOWN,)
        return combine(
            lambda given: call_layer(frame, callee, given[0], node), *inputs, under=frame.guards
        )
    if isinstance(callee, Unknown):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if callee.owned is not None and (is_model_call(name) or not name):
            return Unknown(callee.owned)
    return UNKNOWN


def _of_unknown_shape(made: Plain) -> Value:
    return Tensor(dtype=made.dtype) if isinstance(made, Tensor) else made


def _call_instance(
    frame: Frame,
    callee: Instance,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.Call,
    *,
    complete: bool,
) -> Value:
    cls = callee.ref.cls
    if cls is not None:
        for name in ("__call__", "forward"):
            method = frame.machine.project.method(cls, name)
            if method is not None:
                made = call_function(
                    frame, method, callee, arguments, keywords, node, complete=complete
                )
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
    frame: Frame,
    callee: External,
    arguments: Arguments,
    keywords: Keywords,
    node: ast.Call,
    *,
    complete: bool,
) -> Value:
    name = callee.name
    if name.startswith("super."):
        return _call_super(frame, callee, name[6:], arguments, keywords, node, complete=complete)
    if name.startswith("builtins."):
        return call_builtin(frame, name[9:], arguments, keywords, node)
    if name in _SAME and arguments:
        return arguments[0]
    if name == "typing.cast" and len(arguments) == 2:
        return arguments[1]
    if name == "dataclasses.replace" and len(arguments) == 1:
        return lift(lambda one: replaced(frame, one, keywords, node), arguments[0])
    if name == "torch.nn.Sequential":
        return chained(arguments)
    if name in _PARTIAL and arguments:
        return Partial(arguments[0], arguments[1:], tuple(keywords.items()))
    if isinstance(callee.receiver, Mapping):
        return call_mapping(callee.receiver, name[1:], arguments)
    operator = operator_of(name)
    if operator is None and name not in LAYERS:
        return UNKNOWN
    inputs = (callee.receiver, *arguments) if callee.receiver is not None else arguments
    inputs = tuple(_collapse(value) for value in inputs)
    names = list(keywords)

    def run(values: tuple[Plain, ...]) -> Value:
        split = len(values) - len(names)
        given = dict(zip(names, values[split:], strict=True))
        if operator is None:
            return make_layer(frame, name, values[:split], given, node)
        return apply(frame, operator, values[:split], given, node)

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
    *,
    complete: bool,
) -> Value:
    receiver = callee.receiver
    if not isinstance(receiver, Instance) or receiver.ref.cls is None or frame.cls is None:
        return UNKNOWN
    order = frame.machine.project.mro(receiver.ref.cls)
    start = order.index(frame.cls) + 1 if frame.cls in order else 0
    for cls in order[start:]:
        if name in cls.methods:
            method = cls.methods[name]
            return call_function(
                frame, method, receiver, arguments, keywords, node, complete=complete
            )
    return UNKNOWN
