"""The builtins that carry sizes, and what they return."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.attributes import read_named
from shapecheck.static.counts import rounded_up, rows_of_tensor
from shapecheck.static.frames import Frame
from shapecheck.static.functions import Arguments, Keywords
from shapecheck.static.guards import last_name
from shapecheck.static.lists import any_item
from shapecheck.static.loops import enumerated, zipped
from shapecheck.static.stores import forget_fields, store_attribute
from shapecheck.static.unions import join, lift
from shapecheck.static.values import (
    NONE,
    UNKNOWN,
    Const,
    Instance,
    Items,
    Mapping,
    Plain,
    Sequence,
    Shape,
    Size,
    Tensor,
    Value,
    plain_values,
)


def call_builtin(
    frame: Frame, name: str, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """The result of a builtin; unknown for those that carry no size."""
    if name == "getattr" and len(arguments) >= 2:
        return _getattr(frame, arguments, node)
    if name == "setattr" and len(arguments) == 3:
        return _setattr(frame, arguments, node)
    if name == "hasattr" and len(arguments) == 2:
        return _hasattr(frame, arguments[0], arguments[1])
    if name in ("int", "cast") and arguments:
        return arguments[-1]
    if name == "len" and len(arguments) == 1:
        symbol = rows_of_tensor(last_name(node.args[0])) if node.args else None
        counted = lift(_len, arguments[0])
        return Size(Poly.symbol(symbol)) if symbol and counted == UNKNOWN else counted
    if name == "next" and arguments and node.args:
        return _next(frame, arguments[0], node.args[0])
    if name in ("sorted", "reversed") and arguments:
        return lift(_in_some_order, arguments[0])
    if name == "zip":
        return zipped(arguments)
    if name == "enumerate" and len(arguments) == 1 and not keywords:
        return enumerated(arguments[0])
    if name in ("tuple", "list") and len(arguments) == 1:
        return lift(_as_sequence, arguments[0])
    if name == "dict" and not arguments:
        return Mapping(tuple(keywords.values()), tuple(keywords)) if node.keywords else UNKNOWN
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


def _setattr(frame: Frame, arguments: Arguments, node: ast.Call) -> Value:
    holder, attribute, value = arguments
    if isinstance(attribute, Const) and isinstance(attribute.value, str):
        store_attribute(frame, holder, attribute.value, value, node)
    else:
        forget_fields(frame, holder)
    return NONE


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


def _next(frame: Frame, given: Value, node: ast.expr) -> Value:
    """`next(size for size in sizes if size >= n)` is n rounded up to one of the sizes."""
    if isinstance(node, ast.GeneratorExp) and len(node.generators) == 1:
        conditions, name = node.generators[0].ifs, node.elt
        for test in conditions if len(conditions) == 1 and isinstance(name, ast.Name) else ():
            if isinstance(test, ast.Compare) and len(test.ops) == 1:
                ends = (test.left, test.comparators[0])
                low, high = ends if isinstance(test.ops[0], ast.LtE) else reversed(ends)
                is_up = isinstance(test.ops[0], (ast.LtE, ast.GtE))
                if is_up and ast.dump(high) == ast.dump(name):
                    return lift(_rounded, frame.machine.evaluate(frame, low))
    return lift(lambda one: any_item(one) if isinstance(one, Items) else UNKNOWN, given)


def _rounded(value: Plain) -> Value:
    poly = rounded_up(value.poly) if isinstance(value, Size) else None
    return UNKNOWN if poly is None or not isinstance(value, Size) else Size(poly, value.trail)


def _in_some_order(value: Plain) -> Value:
    if isinstance(value, Sequence):
        return Items(tuple(dict.fromkeys(value.items)))
    return value if isinstance(value, Items) else UNKNOWN


def _as_sequence(value: Plain) -> Value:
    if isinstance(value, Shape):
        if value.tensor.dims is None:
            return UNKNOWN
        return Sequence(tuple(axis or UNKNOWN for axis in value.tensor.dims))
    return value if isinstance(value, (Sequence, Items)) else UNKNOWN
