"""Running a function body: flow-sensitive, branches joined under their guards."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from shapecheck.static.assignments import assign, run_annotated, run_assign, run_augmented
from shapecheck.static.changes import change, holds_items
from shapecheck.static.compact import of_both
from shapecheck.static.contexts import entered
from shapecheck.static.contracts.keeping import keep_result
from shapecheck.static.expressions import YIELDED, evaluate
from shapecheck.static.frames import Frame, State
from shapecheck.static.heap import join_heaps
from shapecheck.static.index import FunctionFacts, FunctionNode, index_local_class
from shapecheck.static.loops import bind_element, bind_turn, forget_constants, turns
from shapecheck.static.mappings import without
from shapecheck.static.paths import Exits, join_names, join_states
from shapecheck.static.shape_tests import equality_test, note_guarded_copy
from shapecheck.static.unions import lift, union
from shapecheck.static.values import (
    NONE,
    UNKNOWN,
    Alternative,
    ClassValue,
    Const,
    FunctionValue,
    Instance,
    Items,
    Sequence,
    Union,
    Value,
    alternatives,
    plain_values,
)
from shapecheck.static.walk import walk, walk_statements


def run_body(frame: Frame) -> Value:
    """Interpret the frame's function; its state is then that of every way out, joined."""
    function = frame.function
    if function is None:
        return UNKNOWN
    entry_guards = len(frame.guards)
    run_block(frame, function.node.body)
    exits = list(frame.returns)
    cut = frame.machine.budget <= 0
    if frame.state.alive or cut:
        exits.append((UNKNOWN if cut else NONE, tuple(frame.guards), frame.state.heap))
    if not exits:
        return UNKNOWN
    yielded = None if cut else frame.state.env.get(YIELDED)
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
    exits = Exits()
    frame.loops.append(exits)
    if known and isinstance(node, (ast.For, ast.AsyncFor)):
        for element in known:
            if frame.state.alive:
                bind_turn(frame, node.target, element)
                run_block(frame, node.body)
                frame.state = exits.next_turn(frame.state)
        frame.loops.pop()
        run_block(frame, node.orelse)
        frame.state = exits.behind(frame.state)
        return
    before = frame.state.copy()
    forgotten = forget_constants(frame, node)
    if isinstance(node, ast.While):
        evaluate(frame, node.test)
    else:
        bind_element(frame, node.target, whole)
    run_block(frame, node.body)
    frame.loops.pop()
    frame.state = exits.next_turn(frame.state)
    ended = frame.state.copy() if exits.breaks else frame.state
    if _is_endless(node):
        frame.state.alive = False
    else:
        if not (isinstance(whole, Sequence) and whole.items):
            frame.state = join_states(frame.state, before, None)
        run_block(frame, node.orelse)
    frame.state = exits.behind_any_turn(frame.state, before, ended, forgotten)


def _is_endless(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether nothing but a `break` or a `return` leaves it."""
    return (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and bool(node.test.value)
    )


def _break(frame: Frame, node: ast.Break) -> None:
    if frame.loops:
        frame.loops[-1].breaks.append(State(frame.state.env, frame.state.heap))
    frame.state.alive = False


def _continue(frame: Frame, node: ast.Continue) -> None:
    if frame.loops:
        frame.loops[-1].continues.append(State(frame.state.env, frame.state.heap))
    frame.state.alive = False


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
        frame.state.env.update(dict.fromkeys(_bound_by(case.pattern), UNKNOWN))
        if case.guard is not None:
            evaluate(frame, case.guard)
        run_block(frame, case.body)
        result = join_states(result, frame.state, None)
    frame.state = result


def _bound_by(pattern: ast.pattern) -> list[str]:
    """The names that a pattern binds."""
    names = [getattr(one, name, None) for one in walk(pattern) for name in ("name", "rest")]
    return [name for name in names if name is not None]


def _return(frame: Frame, node: ast.Return) -> None:
    value = NONE
    if node.value is not None:
        value = keep_result(frame, evaluate(frame, node.value), node.value)
    frame.show_names()
    frame.returns.append((value, tuple(frame.guards), frame.state.heap))
    frame.state.alive = False


def _raise(frame: Frame, node: ast.Raise) -> None:
    frame.state.alive = False


def _assert(frame: Frame, node: ast.Assert) -> None:
    evaluate(frame, node.test)
    narrow(frame.state, node.test, sense=True)


def _function(frame: Frame, node: FunctionNode) -> None:
    facts = FunctionFacts(node.name, f"{frame.where}.{node.name}", node, frame.module)
    if frame.seen is None:
        frame.seen = dict(frame.scope or {})  # a function inside a function inside a function
    frame.state.env[node.name] = FunctionValue(facts, None, frame.seen)
    frame.shared |= _nonlocals(node)
    frame.state.env.update(dict.fromkeys(frame.shared, UNKNOWN))
    frame.show_names()


@lru_cache(maxsize=4096)
def _nonlocals(node: FunctionNode) -> frozenset[str]:
    """The names around a function that it binds anew: nobody follows when."""
    inside = walk_statements(node.body)
    return frozenset(name for one in inside if isinstance(one, ast.Nonlocal) for name in one.names)


def _class(frame: Frame, node: ast.ClassDef) -> None:
    """A class of the function: it sees the names around it, and its methods are looked at too."""
    cls = index_local_class(node, frame.module, f"{frame.where}.")
    frame.state.env[node.name] = ClassValue(cls)
    machine = frame.machine
    around = {**(frame.scope or {}), **frame.state.env}
    known = machine.scopes.setdefault(cls, around)
    if known is not around:
        machine.scopes[cls] = join_names(known, around, None)
    for method in cls.methods.values():
        machine.run_root(machine, method, cls)


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.state.env.pop(target.id, None)
        elif isinstance(target, ast.Attribute):
            for plain in plain_values(evaluate(frame, target.value)):
                if isinstance(plain, Instance):
                    frame.state.heap.put((plain.ref, target.attr), UNKNOWN)
        elif isinstance(target, ast.Subscript):
            held = evaluate(frame, target.value)
            key = evaluate(frame, target.slice)
            if holds_items(held):
                change(frame, target.value, held, lambda one, at=key: without(one, at), target)


_HANDLERS: dict[type[ast.stmt], Callable[..., None]] = of_both(
    {
        ast.Expr: _expression,
        ast.Assign: run_assign,
        ast.AnnAssign: run_annotated,
        ast.AugAssign: run_augmented,
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
_HANDLERS[ast.Break] = _break  # there is nothing in them to make compact
_HANDLERS[ast.Continue] = _continue
