"""The whole run: every function of the entries interpreted, in two processes, facts collected."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from shapecheck.diagnostics.model import Diagnostic, Span
from shapecheck.static.contracts.lookup import Promises
from shapecheck.static.crash import internal_error
from shapecheck.static.entries import Entries
from shapecheck.static.expressions import evaluate
from shapecheck.static.facts import Facts
from shapecheck.static.functions import call_function, parameter_value
from shapecheck.static.heap import Heap
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.indices import unused_indices
from shapecheck.static.loader import Source, split_lines
from shapecheck.static.machine import ROOT_BUDGET, Frame, Machine, State
from shapecheck.static.named import name_owner
from shapecheck.static.packs.drift import drifted
from shapecheck.static.packs.model import Pack
from shapecheck.static.prefilter import can_work
from shapecheck.static.project import Project, module_name
from shapecheck.static.statements import run_body
from shapecheck.static.values import UNKNOWN, ClassValue, Instance, Value
from shapecheck.static.workers import Progress, run_jobs

_STACK_BYTES = 512 * 1024 * 1024
_RECURSION_LIMIT = 30_000
T = TypeVar("T")
Part = tuple[tuple[Path, Source], ...]

_MANY_LINES = 4_000  # of entries: below, one process is as fast as two


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What a run found out, before the rules judge it, and which files that rests on: plain data.

    `loaded` are the texts of files by path, `absent` the paths where a module was looked for.
    """

    facts: Facts
    lines: Mapping[str, int]
    unreadable: Mapping[str, Diagnostic]
    crashes: Mapping[str, Diagnostic]
    drift: tuple[Diagnostic, ...]
    contracts: frozenset[tuple[str, Span]]
    loaded: Mapping[str, str]
    absent: frozenset[str]


def analyse(
    entries: Entries, progress: Progress | None = None, packs: tuple[Pack, ...] = ()
) -> Analysis:
    """Analyse the entries; imports inside their root are followed when needed.

    `packs` say about the code below that root what its source does not.
    `progress` hears how many of the functions are done.
    """
    jobs = [
        partial(_with_room, entries, part, packs, first=not number)
        for number, part in enumerate(_parts(entries))
    ]
    return _together(run_jobs(jobs, progress))


def _parts(entries: Entries) -> list[Part]:
    """The entries in two parts of about the same length, whatever machine this is.

    Each part is interpreted on its own, so the same parts lead to the same facts everywhere.
    """
    ends = list(accumulate(source.lines for _, source in entries.kept))
    if not ends or ends[-1] < _MANY_LINES:
        return [entries.kept]
    middle = min(range(len(ends)), key=lambda index: abs(2 * ends[index] - ends[-1])) + 1
    return [part for part in (entries.kept[:middle], entries.kept[middle:]) if part]


def _together(parts: list[Analysis]) -> Analysis:
    """The parts as one; what two of them saw is as the first of them saw it."""
    first, *others = parts
    for other in others:
        first.facts.add(other.facts)
    return Analysis(
        facts=first.facts,
        lines=_merged(one.lines for one in parts),
        unreadable=_merged(one.unreadable for one in parts),
        crashes=_merged(one.crashes for one in parts),
        drift=tuple(fault for one in parts for fault in one.drift),
        contracts=frozenset[tuple[str, Span]]().union(*(one.contracts for one in parts)),
        loaded=_merged(one.loaded for one in parts),
        absent=frozenset[str]().union(*(one.absent for one in parts)),
    )


def _merged(parts: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """The first of each key, sorted by key."""
    first: dict[str, T] = {}
    for part in parts:
        first = {**part, **first}
    return dict(sorted(first.items()))


def _with_room(
    entries: Entries, part: Part, packs: tuple[Pack, ...], progress: Progress, *, first: bool
) -> Analysis:
    """The analysis of one part, with more stack than the main thread may have."""
    box: list[Analysis | BaseException] = []

    def work() -> None:
        try:
            box.append(_analyse(entries, part, packs, progress, first=first))
        except BaseException as error:  # re-raised below, in the caller's thread
            box.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    # Trees and values live until the end of the run: looking for garbage in them is a third of it.
    collecting = gc.isenabled()
    gc.disable()
    try:
        thread = threading.Thread(target=work, name="shapecheck-lint")
        thread.start()
        thread.join()
    finally:
        if collecting:
            gc.enable()
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    result = box[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _analyse(
    entries: Entries, part: Part, packs: tuple[Pack, ...], progress: Progress, *, first: bool
) -> Analysis:
    project = Project(entries.root, unreadable=dict(entries.unreadable))
    promises = Promises.of(packs)
    is_root = root_test(promises)
    roots: list[FunctionFacts] = []
    crashes: dict[str, Diagnostic] = {}
    mine = {source.path for _, source in part}
    for file, source in entries.kept:
        name, is_package = module_name(file, entries.root)
        try:
            facts = project.add(source, name, is_package=is_package, whole=source.path in mine)
        except Exception as error:  # our mistake in one file must not cost the others
            crashes[source.path] = internal_error(error, name, Span(path=source.path, line=1))
            continue
        if facts is not None and source.path in mine:
            text = split_lines(source.text)
            roots += [one for one in facts.functions if is_root(_segment(one, text))]
    machine = Machine(project, Facts(), run_body, run_root, evaluate, call_function)
    machine.promises = promises
    for number, function in enumerate(roots):
        progress(number, len(roots))
        try:
            for fact in unused_indices(function):
                machine.facts.unused_indices.setdefault(fact.span, fact)
            run_root(machine, function, function.cls)
        except Exception as error:  # as above
            path = function.module.path
            span = function.module.span(function.node)
            crashes.setdefault(path, internal_error(error, function.qualname, span))
    machine.finish()
    return Analysis(
        facts=machine.facts,
        lines=project.lines,
        unreadable=project.unreadable,
        crashes=crashes,
        drift=tuple(drifted(project, packs)) if first else (),
        contracts=machine.promises.in_force,
        loaded=project.texts,
        absent=frozenset(project.absent),
    )


def root_test(promises: Promises) -> Callable[[str], bool]:
    """Tells by the text of a function, comments included, whether it is interpreted on its own."""
    return lambda segment: can_work(segment) or promises.speaks_of(segment)


def _segment(function: FunctionFacts, text: list[str]) -> str:
    return "\n".join(text[function.node.lineno - 1 : function.node.end_lineno])


def run_root(machine: Machine, function: FunctionFacts, cls: ClassFacts | None) -> None:
    """Interpret a function once with nothing known but types, names and its class's owner."""
    key = (function, cls)
    if key in machine.done:
        return
    machine.done.add(key)
    saved, machine.budget = machine.budget, ROOT_BUDGET
    name = (function.module.path, function.qualname, cls.name if cls else "")
    machine.facts.functions.add(name)
    receiver = _receiver(machine, function, cls)
    frame = Frame(
        machine,
        function.module,
        function,
        function.cls,
        State({}, Heap()),
        0,
        (function,),
        None,
        receiver,
        (id(function), id(cls)),
    )
    frame.acting = receiver.ref.owned if isinstance(receiver, Instance) else None
    frame.state.env.update(_parameters(frame, function, receiver))
    try:
        run_body(frame)
    except RecursionError:
        machine.facts.cut_short.add(name)
    if machine.budget <= 0:
        machine.facts.cut_short.add(name)
    machine.budget = saved


def _receiver(machine: Machine, function: FunctionFacts, cls: ClassFacts | None) -> Value | None:
    if cls is None or function.kind == "static":
        return None
    return ClassValue(cls) if function.kind == "class" else Instance(machine.self_ref(cls))


def _parameters(frame: Frame, function: FunctionFacts, receiver: Value | None) -> dict[str, Value]:
    spec = function.node.args
    names = [*spec.posonlyargs, *spec.args]
    env: dict[str, Value] = {}
    if receiver is not None and names:
        env[names[0].arg] = receiver
        names = names[1:]
    for argument in [*names, *spec.kwonlyargs]:
        owned = name_owner(frame, argument.arg, argument)
        env[argument.arg] = parameter_value(frame, function, argument, owned)
    for extra in (spec.vararg, spec.kwarg):
        if extra is not None:
            env[extra.arg] = UNKNOWN
    return env
