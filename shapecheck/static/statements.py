"""Running a function body: flow-sensitive, branches joined under their guards."""

from __future__ import annotations

import ast
from collections.abc import Callable

from shapecheck.static.arms import name_arms
from shapecheck.static.compact import of_both
from shapecheck.static.contexts import entered
from shapecheck.static.contracts.keeping import keep_result
from shapecheck.static.expressions import YIELDED, evaluate
from shapecheck.static.guards import Guard
from shapecheck.static.heap import join_heaps
from shapecheck.static.index import FunctionFacts, FunctionNode, index_local_class
from shapecheck.static.loops import bind_element, bind_turn, forget_constants, turns
from shapecheck.static.machine import Frame, State
from shapecheck.static.mappings import with_entry
from shapecheck.static.named import count_by_name
from shapecheck.static.named_tuples import as_row
from shapecheck.static.operators.meetings import base_text, fill
from shapecheck.static.shape_tests import equality_test, note_guarded_copy
from shapecheck.static.shapes import unpacked_shape
from shapecheck.static.sides import note_formula
from shapecheck.static.stores import store_attribute
from shapecheck.static.unions import join, lift, union
from shapecheck.static.values import (
    NONE,
    UNKNOWN,
    Alternative,
    ClassValue,
    Const,
    FunctionValue,
    Items,
    Mapping,
    Sequence,
    Shape,
    Union,
    Unknown,
    Value,
    alternatives,
    plain_values,
)


def run_body(frame: Frame) -> Value:
    """Interpret the frame's function; its state is then that of every way out, joined."""
    function = frame.function
    if function is None:
        return UNKNOWN
    entry_guards = len(frame.guards)
    run_block(frame, function.node.body)
    exits = list(frame.returns)
    if frame.state.alive:
        result = NONE if frame.machine.budget > 0 else UNKNOWN
        exits.append((result, tuple(frame.guards), frame.state.heap))
    yielded = frame.state.env.get(YIELDED)
    if not exits:
        return UNKNOWN
    heap = exits[0][2]
    for _, guards, other in exits[1:]:
        own = guards[entry_guards] if len(guards) > entry_guards else None
        heap = join_heaps(heap, other, None if own is None else own.negated())
    frame.state = State({}, heap)
    if yielded is not None:
        made = [one for one in alternatives(yielded) if isinstance(one.value, Items)]
        return union(Alternative(one.value) for one in made)
    if len(exits) == 1 and len(exits[0][1]) <= entry_guards and not isinstance(exits[0][0], Union):
        return exits[0][0]
    return union(
        Alternative(one.value, (*guards[entry_guards:], *one.guards))
        for value, guards, _ in exits
        for one in alternatives(value)
    )


def run_block(frame: Frame, body: list[ast.stmt]) -> None:
    """Interpret statements in order until the path ends or the budget is spent."""
    depth = len(frame.guards)
    for statement in body:
        if not frame.state.alive:
            break
        frame.machine.budget -= 1
        if frame.machine.budget <= 0:
            break
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            handler(frame, statement)
    del frame.guards[depth:]


def _expression(frame: Frame, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        evaluate(frame, node.value)


def _assign(frame: Frame, node: ast.Assign) -> None:
    value = evaluate(frame, node.value)
    if isinstance(node.value, ast.IfExp):
        name_arms(frame, node)
    for target in node.targets:
        if isinstance(target, ast.Attribute) and isinstance(node.value, ast.Call):
            frame.machine.facts.destinations[frame.module.span(node.value)] = base_text(target)
        assign(frame, target, value, node.value)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(frame, node.target, evaluate(frame, node.value), node.value)


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    value = evaluate(frame, node.value)
    target = node.target
    if isinstance(target, (ast.Name, ast.Attribute)):
        load = ast.copy_location(_loaded(target), target)
        result = evaluate(
            frame, ast.copy_location(ast.BinOp(load, node.op, node.value), node.value)
        )
        assign(frame, target, result, node.value)
    elif isinstance(value, Unknown):
        evaluate(frame, target.value)


def _loaded(target: ast.Name | ast.Attribute) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    return ast.Attribute(target.value, target.attr, ast.Load())


def assign(frame: Frame, target: ast.expr, value: Value, source: ast.expr) -> None:
    """`target = value` on this path."""
    if isinstance(target, ast.Name):
        # A name of a count is an alias of what it was given; only an unknown takes its meaning.
        count = count_by_name(frame, target.id, target) if value == UNKNOWN else None
        frame.state.env[target.id] = value if count is None else count
        note_formula(frame, target, value, source)
    elif isinstance(target, ast.Attribute):
        store_attribute(frame, evaluate(frame, target.value), target.attr, value, source)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value, source)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, UNKNOWN, source)
    elif isinstance(target, ast.Subscript):
        held = evaluate(frame, target.value)
        if any(isinstance(one, Mapping) for one in plain_values(held)):
            key = evaluate(frame, target.slice)
            assign(frame, target.value, lift(lambda one: with_entry(one, key, value), held), source)
            return
        into = evaluate(frame, ast.copy_location(_read_of(target), target))
        for one in plain_values(into):
            for other in plain_values(value):
                fill(frame, one, other, target.value, source, source)


def _read_of(target: ast.Subscript) -> ast.expr:
    return ast.Subscript(target.value, target.slice, ast.Load())


def _unpack(frame: Frame, targets: list[ast.expr], value: Value, source: ast.expr) -> None:
    columns: list[list[Alternative]] = [[] for _ in targets]
    for choice in alternatives(value):
        plain = choice.value
        if isinstance(plain, Shape):
            plain = Sequence(unpacked_shape(plain, len(targets)))
        plain = as_row(frame, plain, source)
        fits = isinstance(plain, Sequence) and len(plain.items) == len(targets)
        owned = plain.owned if isinstance(plain, Unknown) else None
        for position, column in enumerate(columns):
            item: Value = Unknown(owned) if owned else UNKNOWN
            if fits and isinstance(plain, Sequence):
                item = plain.items[position]
            column.extend(
                Alternative(one.value, (*choice.guards, *one.guards)) for one in alternatives(item)
            )
    given = source.elts if isinstance(source, (ast.Tuple, ast.List)) else []
    for position, (target, column) in enumerate(zip(targets, columns, strict=True)):
        place = given[position] if len(given) == len(targets) else source
        assign(frame, target, union(column), place)


def _if(frame: Frame, node: ast.If) -> None:
    decided = evaluate(frame, node.test)
    if isinstance(decided, Const) and isinstance(decided.value, bool):
        _inline_block(frame, node.body if decided.value else node.orelse)
        return
    test = equality_test(frame, node)
    guard = frame.guard(node.test, True)
    before = frame.state
    other = before.copy()
    if test is not None:
        frame.tests.append(test)
        note_guarded_copy(frame, node, test)
    frame.guards.append(guard)
    narrow(before, node.test, sense=True)
    run_block(frame, node.body)
    then = frame.state
    if test is not None:
        frame.tests.pop()
    frame.state = other
    frame.guards[-1] = frame.guard(node.test, False)
    narrow(other, node.test, sense=False)
    run_block(frame, node.orelse)
    frame.guards.pop()
    otherwise = frame.state
    frame.state = join_states(then, otherwise, guard)
    if then.alive != otherwise.alive:
        # The rest of the block only runs on the side that goes on.
        frame.guards.append(guard if then.alive else frame.guard(node.test, False))


def narrow(state: State, test: ast.expr, *, sense: bool) -> None:
    """Drop the alternatives of a local name that `is None` tests rule out."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and sense:
        for value in test.values:
            narrow(state, value, sense=True)
        return
    if not (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
        and isinstance(test.left, ast.Name)
    ):
        return
    value = state.env.get(test.left.id)
    if not isinstance(value, Union):
        return
    keep_none = isinstance(test.ops[0], ast.Is) is sense
    kept = [one for one in value.alternatives if (one.value == NONE) is keep_none]
    if kept:
        state.env[test.left.id] = union(kept)


def _loop(frame: Frame, node: ast.For | ast.AsyncFor | ast.While) -> None:
    whole = UNKNOWN if isinstance(node, ast.While) else evaluate(frame, node.iter)
    known = turns(whole)
    if known and isinstance(node, (ast.For, ast.AsyncFor)):
        for element in known:
            if frame.state.alive:
                bind_turn(frame, node.target, element)
                run_block(frame, node.body)
        run_block(frame, node.orelse)
        return
    skipped = frame.state.copy()
    forget_constants(frame, node)
    if isinstance(node, ast.While):
        evaluate(frame, node.test)
    else:
        bind_element(frame, node.target, whole)
    run_block(frame, node.body)
    frame.state = join_states(frame.state, skipped, None)
    run_block(frame, node.orelse)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    for item in node.items:
        manager = evaluate(frame, item.context_expr)
        if item.optional_vars is not None:
            expression = item.context_expr
            given = lift(lambda one, at=expression: entered(frame, one, at), manager)
            assign(frame, item.optional_vars, given, expression)
    _inline_block(frame, node.body)


def _inline_block(frame: Frame, body: list[ast.stmt]) -> None:
    """Run a block whose early exits still guard what follows it."""
    for statement in body:
        if not frame.state.alive or frame.machine.budget <= 0:
            break
        frame.machine.budget -= 1
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            handler(frame, statement)


def _try(frame: Frame, node: ast.Try | ast.TryStar) -> None:
    before = frame.state.copy()
    run_block(frame, node.body)
    if frame.state.alive:
        run_block(frame, node.orelse)
    after = frame.state
    for handler in node.handlers:
        frame.state = before.copy()
        run_block(frame, handler.body)
        after = join_states(after, frame.state, None)
    frame.state = after
    if frame.state.alive:
        run_block(frame, node.finalbody)


def _match(frame: Frame, node: ast.Match) -> None:
    evaluate(frame, node.subject)
    before = frame.state
    result = before.copy()
    last = node.cases[-1]
    if isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and not last.guard:
        result.alive = False  # one of the cases is taken
    for case in node.cases:
        frame.state = before.copy()
        run_block(frame, case.body)
        result = join_states(result, frame.state, None)
    frame.state = result


def _return(frame: Frame, node: ast.Return) -> None:
    value = NONE
    if node.value is not None:
        value = keep_result(frame, evaluate(frame, node.value), node.value)
    frame.returns.append((value, tuple(frame.guards), frame.state.heap))
    frame.state.alive = False


def _raise(frame: Frame, node: ast.Raise) -> None:
    frame.state.alive = False


def _assert(frame: Frame, node: ast.Assert) -> None:
    evaluate(frame, node.test)
    narrow(frame.state, node.test, sense=True)


def _function(frame: Frame, node: FunctionNode) -> None:
    facts = FunctionFacts(node.name, f"{frame.where}.{node.name}", node, frame.module)
    scope = frame.state.env
    if frame.scope:  # a function inside a function inside a function
        scope = frame.scope | scope
    frame.state.env[node.name] = FunctionValue(facts, None, scope)


def _class(frame: Frame, node: ast.ClassDef) -> None:
    """A class of the function: it sees the names around it, and its methods are looked at too."""
    cls = index_local_class(node, frame.module, f"{frame.where}.")
    frame.state.env[node.name] = ClassValue(cls)
    machine = frame.machine
    around = {**(frame.scope or {}), **frame.state.env}
    known = machine.scopes.setdefault(cls, around)
    if known is not around:
        machine.scopes[cls] = _join_env(known, around, None)
    for method in cls.methods.values():
        machine.run_root(machine, method, cls)


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.state.env.pop(target.id, None)


def join_states(left: State, right: State, guard: Guard | None) -> State:
    """The state after two paths meet again; a path that ended does not count."""
    if not left.alive:
        return right
    if not right.alive:
        return left
    return State(_join_env(left.env, right.env, guard), join_heaps(left.heap, right.heap, guard))


def _join_env(
    left: dict[str, Value], right: dict[str, Value], guard: Guard | None
) -> dict[str, Value]:
    if left is right:
        return left
    result = dict(left)
    for name, value in right.items():
        mine = left.get(name)
        if mine is None:
            result[name] = join(UNKNOWN, value, guard)
        elif mine is not value:
            result[name] = join(mine, value, guard)
    if len(result) > len(right):
        for name in left.keys() - right.keys():
            result[name] = join(left[name], UNKNOWN, guard)
    return result


_HANDLERS: dict[type[ast.stmt], Callable[..., None]] = of_both(
    {
        ast.Expr: _expression,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augmented,
        ast.If: _if,
        ast.For: _loop,
        ast.AsyncFor: _loop,
        ast.While: _loop,
        ast.With: _with,
        ast.AsyncWith: _with,
        ast.Try: _try,
        ast.TryStar: _try,
        ast.Match: _match,
        ast.Return: _return,
        ast.Raise: _raise,
        ast.Assert: _assert,
        ast.FunctionDef: _function,
        ast.AsyncFunctionDef: _function,
        ast.ClassDef: _class,
        ast.Delete: _delete,
    }
)
