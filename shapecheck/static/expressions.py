"""Evaluating expressions to abstract values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeGuard

from shapecheck.dims.expr import Poly
from shapecheck.static.arms import note_arms
from shapecheck.static.attributes import read_attribute
from shapecheck.static.calls import evaluate_call
from shapecheck.static.compact import of_both
from shapecheck.static.comprehensions import comprehension, dict_comprehension
from shapecheck.static.contracts.sizes import size_by_key
from shapecheck.static.counts import rows_of_tensor
from shapecheck.static.extent import manageable
from shapecheck.static.facts import Division
from shapecheck.static.frames import Frame
from shapecheck.static.global_names import global_value
from shapecheck.static.guards import last_name, single_branch
from shapecheck.static.lists import any_item, extended
from shapecheck.static.mappings import MAX_ENTRIES, looked_up
from shapecheck.static.named import size_of_entry
from shapecheck.static.named_tuples import as_row
from shapecheck.static.operators.arguments import axis_of
from shapecheck.static.operators.joining import matmul
from shapecheck.static.operators.meetings import broadcast
from shapecheck.static.operators.selection import index_tensor
from shapecheck.static.ranks import note_axis, note_ranked
from shapecheck.static.shape_tests import note_compared
from shapecheck.static.shapes import axes_as_values, cut_shape, literal_int
from shapecheck.static.symbols import SizePoly, bounded
from shapecheck.static.unions import combine, join, lift, union
from shapecheck.static.values import (
    NONE,
    UNKNOWN,
    Alternative,
    ClassValue,
    Const,
    FunctionValue,
    Instance,
    Items,
    Mapping,
    Plain,
    Sequence,
    Shape,
    Size,
    Tensor,
    Unknown,
    Value,
    alternatives,
    plain_values,
)

YIELDED = "yield"  # no name of a program: what the function has yielded on this path


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The abstract value of an expression; unknown for what is not modelled."""
    handler = _HANDLERS.get(type(node))
    return handler(frame, node) if handler else UNKNOWN


def _name(frame: Frame, node: ast.Name) -> Value:
    value = frame.state.env.get(node.id)
    if value is not None:
        return value
    if frame.scope is not None and node.id in frame.scope:
        return frame.scope[node.id]
    return global_value(frame, node.id)


def _constant(frame: Frame, node: ast.Constant) -> Value:
    return Const(node.value)


def _sequence(frame: Frame, node: ast.Tuple | ast.List) -> Value:
    items: list[Value] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            value = evaluate(frame, item.value)
            if isinstance(value, Shape) and value.tensor.dims is not None:
                value = Sequence(axes_as_values(value.tensor.dims))
            if not isinstance(value, Sequence):
                return UNKNOWN
            items.extend(value.items)
        else:
            items.append(evaluate(frame, item))
    return manageable(Sequence(tuple(items)))


def _dict(frame: Frame, node: ast.Dict) -> Value:
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
    known = len(keys) == len(node.keys) <= MAX_ENTRIES
    values = tuple(evaluate(frame, value) for value in node.values[:MAX_ENTRIES])
    return manageable(Mapping(values, tuple(keys) if known else None))


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    return read_attribute(frame, evaluate(frame, node.value), node)


def _conditional(frame: Frame, node: ast.IfExp) -> Value:
    test = evaluate(frame, node.test)
    if _is_bool(test):
        value = evaluate(frame, node.body if test.value else node.orelse)
        note_arms(frame, node)
        return value
    guard = frame.guard(node.test, True)
    frame.guards.append(guard)
    then = evaluate(frame, node.body)
    frame.guards[-1] = frame.guard(node.test, False)
    other = evaluate(frame, node.orelse)
    frame.guards.pop()
    note_arms(frame, node)
    preferred = _declared_equal(node, then, other)
    return preferred if preferred is not None else join(then, other, guard)


def _declared_equal(node: ast.IfExp, then: Value, other: Value) -> Value | None:
    """`A if hasattr(c, "x") else B` declares B equal to A: B is no second origin."""
    test, sense = node.test, True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, sense = test.operand, False
    if not (
        isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "hasattr"
    ):
        return None
    first, second = (then, other) if sense else (other, then)
    return first if any(isinstance(plain, Size) for plain in plain_values(first)) else second


def _boolean(frame: Frame, node: ast.BoolOp) -> Value:
    values = [evaluate(frame, value) for value in node.values]
    if isinstance(node.op, ast.Or):
        choices = [c for value in values for c in alternatives(value) if c.value != Const(None)]
        return union(Alternative(choice.value) for choice in choices)
    return values[-1]


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    operation = node.op
    if isinstance(left, Const) and isinstance(right, Const):
        return (
            UNKNOWN
            if as_poly(left) is None or as_poly(right) is None
            else _size(left, right, operation)
        )
    return combine(
        lambda pair: _binary_plain(frame, node, pair[0], pair[1]), left, right, under=frame.guards
    )


def _binary_plain(frame: Frame, node: ast.BinOp, left: Plain, right: Plain) -> Value:
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if isinstance(node.op, ast.MatMult):
            return matmul(frame, left, right, node)
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            note_ranked(frame, node.left, node.right)
        return broadcast(frame, type(node.op).__name__.lower(), left, right, node)
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(node.op, ast.Add):
        return manageable(Sequence(left.items + right.items))
    if isinstance(left, Items) and isinstance(right, (Sequence, Items)):
        return extended(left, right) if isinstance(node.op, ast.Add) else UNKNOWN
    if isinstance(node.op, ast.FloorDiv) and isinstance(left, Size) and isinstance(right, Size):
        _note_division(frame, left, right, node)
    return _size(left, right, node.op)


def _note_division(frame: Frame, left: Size, right: Size, node: ast.BinOp) -> None:
    if left.poly.symbols() and right.poly.symbols():
        span = frame.module.span(node)
        made = Division(
            rows=left,
            by=right,
            span=span,
            where=frame.where,
            single_branch=single_branch(frame.guards),
        )
        frame.machine.facts.divisions.setdefault(span, made)


def _size(left: Plain, right: Plain, operation: ast.operator) -> Value:
    one, other = as_poly(left), as_poly(right)
    if one is None or other is None:
        return UNKNOWN
    result: SizePoly | None = None
    if isinstance(operation, ast.Add):
        result = one + other
    elif isinstance(operation, ast.Sub):
        result = one - other
    elif isinstance(operation, ast.Mult):
        result = one * other
    elif isinstance(operation, ast.FloorDiv):
        result = one.divide(other) if other.terms else None
    result = bounded(result) if result is not None else None
    if result is None:
        return UNKNOWN
    trail = tuple(
        step for value in (left, right) if isinstance(value, Size) for step in value.trail
    )
    return Size(result, trail[-12:])


def as_poly(value: Plain) -> SizePoly | None:
    """The polynomial of an integer value, else None."""
    axis = axis_of(value)
    return None if axis is None else axis.poly


def _compare(frame: Frame, node: ast.Compare) -> Value:
    left = evaluate(frame, node.left)
    rights = [evaluate(frame, comparator) for comparator in node.comparators]
    if len(rights) > 1:
        return UNKNOWN
    right, operation = rights[0], node.ops[0]
    if isinstance(left, Const) and isinstance(right, Const):
        return _decided(left.value, right.value, operation)
    if right == NONE and isinstance(operation, (ast.Is, ast.IsNot)):
        return _is_none(left, isinstance(operation, ast.Is))
    if isinstance(left, Tensor):
        return combine(
            lambda pair: broadcast(frame, "compare", pair[0], pair[1], node),
            left,
            right,
            under=frame.guards,
        )
    if isinstance(operation, (ast.Eq, ast.NotEq)):
        note_compared(frame, left, right)
    return UNKNOWN


def _decided(left: object, right: object, operation: ast.cmpop) -> Value:
    """What comparing two literals of one type for equality says."""
    is_same = isinstance(operation, (ast.Eq, ast.Is))
    is_other = isinstance(operation, (ast.NotEq, ast.IsNot))
    if type(left) is not type(right) or not (is_same or is_other):
        return UNKNOWN
    return Const((left == right) is is_same)


def _is_none(value: Value, wanted: bool) -> Value:
    if value == NONE:
        return Const(wanted)
    if isinstance(value, Instance):
        # What came from outside may be None whatever its annotation says.
        return UNKNOWN if value.ref.entry else Const(not wanted)
    known = Size | Sequence | FunctionValue | ClassValue
    return Const(not wanted) if isinstance(value, known) else UNKNOWN


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        return Const(not value.value) if _is_bool(value) else UNKNOWN
    if isinstance(node.op, ast.USub) and isinstance(value, Const):
        return Const(-value.value) if isinstance(value.value, (int, float)) else UNKNOWN
    return value if isinstance(value, Tensor) else UNKNOWN


def _is_bool(value: Value) -> TypeGuard[Const]:
    return isinstance(value, Const) and isinstance(value.value, bool)


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    named = size_by_key(frame, node.value, node.slice, node)
    if named is not None:
        return named
    base = evaluate(frame, node.value)
    if isinstance(node.slice, ast.Constant):
        entry = size_of_entry(frame, base, node.slice, node.value, node)
        if entry is not None:
            return entry
        if isinstance(base, Instance):
            base = as_row(frame, base, node.value)
    index = evaluate(frame, node.slice) if not isinstance(node.slice, ast.Slice) else UNKNOWN
    if isinstance(node.slice, ast.Slice):
        for bound in (node.slice.lower, node.slice.upper, node.slice.step):
            if bound is not None:
                evaluate(frame, bound)
    note_axis(frame, node, literal_int(index))
    value = lift(lambda plain: _item(frame, plain, index, node), base)
    if value == UNKNOWN and literal_int(index) == 0 and isinstance(node.value, ast.Attribute):
        return _rows_by_name(node.value) or value
    return value


def _rows_by_name(shape: ast.Attribute) -> Size | None:
    """`seq_lens.shape[0]`: what there is one of for each request counts the requests."""
    symbol = rows_of_tensor(last_name(shape.value)) if shape.attr == "shape" else None
    return Size(Poly.symbol(symbol)) if symbol else None


def _item(frame: Frame, base: Plain, index: Value, node: ast.Subscript) -> Value:
    if isinstance(base, Tensor):
        return index_tensor(frame, base, node.slice, index)
    if isinstance(base, Shape):
        if isinstance(node.slice, ast.Slice):
            return cut_shape(frame, base, node.slice)
        position = literal_int(index)
        axis = base.tensor.axis(position) if position is not None else None
        if axis is None and position is not None and position > 0 and base.tensor.dims is None:
            # A tensor known by its last axis alone is a matrix of rows in this field.
            axis = base.tensor.last if position == 1 else None
        return axis or UNKNOWN
    if isinstance(base, Sequence):
        position = literal_int(index)
        if position is not None and -len(base.items) <= position < len(base.items):
            return base.items[position]
        return UNKNOWN
    if isinstance(base, Items):
        return UNKNOWN if isinstance(node.slice, ast.Slice) else any_item(base)
    if isinstance(base, Mapping):
        return looked_up(base, index)
    return Unknown(base.owned) if isinstance(base, Unknown) else UNKNOWN


def _named(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    frame.state.env[node.target.id] = value
    return value


def _await(frame: Frame, node: ast.Await) -> Value:
    return evaluate(frame, node.value)


def _yield(frame: Frame, node: ast.Yield) -> Value:
    value = NONE if node.value is None else evaluate(frame, node.value)
    earlier = frame.state.env.get(YIELDED)
    made = Items((value,))
    frame.state.env[YIELDED] = made if earlier is None else join(made, earlier)
    return UNKNOWN


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    return UNKNOWN


_HANDLERS: dict[type[ast.expr], Callable[..., Value]] = of_both(
    {
        ast.Name: _name,
        ast.Constant: _constant,
        ast.Tuple: _sequence,
        ast.List: _sequence,
        ast.Dict: _dict,
        ast.Attribute: _attribute,
        ast.Call: evaluate_call,
        ast.IfExp: _conditional,
        ast.BoolOp: _boolean,
        ast.BinOp: _binary,
        ast.Compare: _compare,
        ast.UnaryOp: _unary,
        ast.Subscript: _subscript,
        ast.NamedExpr: _named,
        ast.ListComp: comprehension,
        ast.SetComp: comprehension,
        ast.GeneratorExp: comprehension,
        ast.DictComp: dict_comprehension,
        ast.Await: _await,
        ast.Lambda: _lambda,
        ast.Yield: _yield,
    }
)
