"""Constructors that wait until somebody asks for a field of their object: most are never asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shapecheck.static.frames import Frame, State
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.machine import MAX_DEPTH, Machine
from shapecheck.static.recall import RecallError
from shapecheck.static.units import Birth
from shapecheck.static.values import (
    External,
    FunctionValue,
    Instance,
    Items,
    Mapping,
    ObjectRef,
    Partial,
    Sequence,
    Union,
    Value,
)


def postpone(frame: Frame, init: FunctionFacts, made: Instance, env: dict[str, Value]) -> None:
    """Let a constructor wait; what it sees is seen by the unit that makes the object."""
    if init in frame.stack:
        return
    depth, stack, heap = frame.depth + 1, (*frame.stack, init), frame.state.heap
    calls = (*frame.calls, id(made.ref))
    machine = frame.machine  # the frame itself, and all it returned, need not wait
    birth, unit = Birth(machine.giver), machine.unit
    made.ref.birth = birth
    if depth >= MAX_DEPTH:
        machine.cuts += 1
        return

    def run() -> None:
        made.ref.pending = None
        machine.reach.add(depth, (init,))
        state, scope = State(env, heap.fork()), machine.scope_of(init)
        own = Frame(machine, init.module, init, init.cls, state, depth, stack, scope, made, calls)
        with machine.seeing_for(unit), machine.giving(birth, init.body):
            try:
                machine.run_apart(own)
            except RecursionError:
                machine.facts.cut_short.add((init.module.span(init.node), unit[2]))

    made.ref.pending = run


def run_waiting(machine: Machine) -> None:
    """Run what still waits in the objects that the fields of a class lead to.

    A later run recalls these objects, and cannot run a constructor in the middle of this one.
    """
    seen: set[ObjectRef] = set()
    while found := [ref for ref in machine.selves.values() if ref not in seen]:
        for ref in found:  # grows meanwhile
            if ref in seen:
                continue
            seen.add(ref)
            if ref.pending is not None and ref.cls is not None:
                _run(machine, ref.cls, ref.pending)
            found += [one for value in ref.settled.values() for one in _objects_in(value)]


def _run(machine: Machine, cls: ClassFacts, constructor: Callable[[], None]) -> None:
    try:
        constructor()
    except RecallError:
        raise
    except Exception as error:  # our mistake in one constructor must not cost the others
        machine.project.crashed(error, f"{cls.name}.__init__", cls.module.path)


def _objects_in(value: Value | None) -> Iterable[ObjectRef]:
    if isinstance(value, Instance):
        return (value.ref,)
    if isinstance(value, Union):
        inside: Iterable[Value | None] = (one.value for one in value.alternatives)
    elif isinstance(value, Sequence):
        inside = value.items
    elif isinstance(value, (Items, Mapping)):
        inside = value.choices
    elif isinstance(value, Partial):
        inside = (value.callee, *value.arguments, *(one for _, one in value.keywords))
    elif isinstance(value, (External, FunctionValue)):
        inside = (value.receiver,)
    else:
        return ()
    return [ref for one in inside for ref in _objects_in(one)]
