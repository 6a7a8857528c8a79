"""The whole run: every function of the entries interpreted, in two processes, facts collected."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path

from shapecheck.static.analysis import Analysis, together
from shapecheck.static.contracts.declared import Declarations, may_declare
from shapecheck.static.contracts.faults import contract_faults
from shapecheck.static.contracts.lookup import Promises
from shapecheck.static.contracts.marks import may_hold_contracts
from shapecheck.static.crash import internal_error
from shapecheck.static.entries import Entries
from shapecheck.static.expressions import evaluate
from shapecheck.static.frames import Frame, State
from shapecheck.static.functions import call_function, parameter_value
from shapecheck.static.graph_keys import key_formulae, may_hold_keys
from shapecheck.static.heap import Heap
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.indices import may_measure_index, unused_indices
from shapecheck.static.loader import Source, split_lines
from shapecheck.static.machine import ROOT_BUDGET, Machine, unit_of
from shapecheck.static.named import name_owner
from shapecheck.static.packs.drift import drifted
from shapecheck.static.packs.model import Pack
from shapecheck.static.prefilter import Weight, speaks, weight
from shapecheck.static.project import Project, module_name
from shapecheck.static.recall import RecallError, recall
from shapecheck.static.statements import run_body
from shapecheck.static.states import FieldState, state_of
from shapecheck.static.units import Basis, Body, UnitKey, Units, whole_text
from shapecheck.static.values import UNKNOWN, ClassValue, Instance, Value
from shapecheck.static.waiting import run_waiting
from shapecheck.static.workers import Progress, run_jobs

_STACK_BYTES = 512 * 1024 * 1024
_RECURSION_LIMIT = 30_000
_FRAME_WORDS = 1 << 20
Part = tuple[tuple[Path, Source], ...]

_MANY_LINES = 4_000  # of entries: below, a process is not worth its start


def analyse(
    entries: Entries,
    progress: Progress | None = None,
    packs: tuple[Pack, ...] = (),
    states: tuple[FieldState, ...] = (),
    *,
    only: frozenset[UnitKey] | None = None,
    broken: Collection[str] = (),
    lasting: bool = False,
) -> Analysis:
    """Analyse the entries; imports inside their root are followed when needed.

    `packs` say about the code below that root what its source does not.
    `progress` hears how many of the functions are done.
    `only` leaves out every unit but these and what they ask for, beyond what `states` tell: those
    are left by an earlier run, one for each part, and by this one if it is to be `lasting`.
    `broken` are the files that this earlier run could not read: a part sees as little of its own.
    """
    parts = [(part, None) for part in _parts(entries)]
    if only is not None:
        paths = {path for path, _, _ in only}
        known = states if len(states) == len(parts) else [None] * len(parts)
        parts = [
            (tuple(one for one in part if one[1].path in paths or one[1].path in broken), state)
            for (part, _), state in zip(parts, known, strict=True)
            if any(one[1].path in paths for one in part)
        ] or [((), None)]
    jobs = [
        partial(
            _with_room,
            Job(entries, part, packs, only, state, number=number, of=len(parts), lasting=lasting),
        )
        for number, (part, state) in enumerate(parts)
    ]
    found = together(run_jobs(jobs, progress, apart=_are_many(entries)))
    # The texts of the entries are here: no part has to hand them back.
    given = {source.path: source.text for _, source in entries.read}
    return replace(found, loaded=dict(sorted({**given, **found.loaded}.items())))


@dataclass(frozen=True, slots=True)
class Job:
    """One part of a run: its entries, the units that are asked for, and what is known of others."""

    entries: Entries
    part: Part
    packs: tuple[Pack, ...]
    only: frozenset[UnitKey] | None
    state: FieldState | None
    number: int
    of: int
    lasting: bool


def _parts(entries: Entries) -> list[Part]:
    """The entries in two parts of about the same length, whatever machine this is.

    Each part is interpreted on its own, so the same parts lead to the same facts everywhere.
    """
    if not _are_many(entries):
        return [entries.kept]
    ends = list(accumulate(source.lines for _, source in entries.kept))
    middle = min(range(len(ends)), key=lambda index: abs(2 * ends[index] - ends[-1])) + 1
    return [part for part in (entries.kept[:middle], entries.kept[middle:]) if part]


def _are_many(entries: Entries) -> bool:
    return sum(source.lines for _, source in entries.kept) >= _MANY_LINES


def _with_room(job: Job, progress: Progress) -> Analysis:
    """The analysis of one part, with more stack than the main thread may have."""
    box: list[Analysis | BaseException] = []

    def work() -> None:
        try:
            box.append(_analyse(job, progress))
        except BaseException as error:  # re-raised below, in the caller's thread
            box.append(error)

    # Python keeps frames in chunks of 16 KB, mapped and unmapped whenever a call crosses an edge.
    # A chunk has room for the frame that it is made for, and here for all of those below it.
    work.__code__ = work.__code__.replace(co_stacksize=_FRAME_WORDS)
    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    try:
        thread = threading.Thread(target=work, name="shapecheck-lint")
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    result = box[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _analyse(job: Job, progress: Progress) -> Analysis:
    entries, packs, only = job.entries, job.packs, job.only
    project = Project(entries.root, unreadable=dict(entries.unreadable))
    promises = Promises.of(packs)
    weigh = weighing(promises)
    roots: list[tuple[FunctionFacts, bool]] = []
    crashes = project.crashes
    mine = {source.path for _, source in job.part}
    told = [
        one
        for one in entries.spoken[job.number :: job.of]
        if only is None or whole_text(one[1].path) in only
    ]
    spoken = {source.path for _, source in told}
    for file, source in (*entries.kept, *told):
        name, is_package = module_name(file, entries.root)
        whole = source.path in mine or source.path in spoken
        if not whole and not may_declare(source.text):
            project.given.setdefault(name, (source, is_package))
            continue
        try:
            facts = project.add(source, name, is_package=is_package, whole=whole)
        except Exception as error:  # our mistake in one file must not cost the others
            project.crashed(error, name, source.path)
            continue
        if facts is not None and source.path in mine:
            text = split_lines(source.text)
            texts = [(one, _segment(one, text)) for one in facts.functions]
            weights = [weigh(f"{one.qualname}\n{own}") for one, own in texts]
            about = speaks(source.text)
            telling = {one.cls for (one, _), w in zip(texts, weights, strict=True) if w.tells}
            roots += [
                (one, may_measure_index(own))
                for (one, own), w in zip(texts, weights, strict=True)
                if w.works and (about or w.tells or (one.cls is not None and one.cls in telling))
            ]
    machine = Machine(project, run_body, run_root, evaluate, call_function)
    machine.promises = promises
    if job.state is not None:
        recall(machine, job.state)
    for done, (function, measures) in enumerate(roots):
        progress(done, len(roots))
        try:
            unit = unit_of(function, function.cls)
            if only is not None and unit not in only:
                continue
            if measures:
                found = machine.segment(unit).unused_indices
                found |= {fact.span: fact for fact in unused_indices(function)}
            run_root(machine, function, function.cls)
            machine.close_segments()
            gc.collect(0)  # the objects of this function that no field leads to
        except RecallError:
            raise
        except Exception as error:  # as above
            path = function.module.path
            span = function.module.span(function.node)
            crashes.setdefault(path, internal_error(error, function.qualname, span))
    run_waiting(machine)
    _read_texts(machine, mine | spoken)
    machine.finish()
    # What an earlier run said of the packs still holds where only bodies changed.
    drift = tuple(drifted(project, packs)) if not job.number and only is None else ()
    project.drop_bodies()
    machine.drop_calls()
    given = {source.path for _, source in entries.read}
    return Analysis(
        units=Units.of(filter(None, machine.segments), machine.bases).closed(),
        lines=project.lines,
        unreadable=project.unreadable,
        crashes=crashes,
        drift=drift,
        contracts=machine.promises.in_force,
        loaded={path: text for path, text in project.texts.items() if path not in given},
        absent=frozenset(project.absent),
        states=(state_of(machine),) if job.lasting else (),
    )


def _read_texts(machine: Machine, mine: set[str]) -> None:
    """Note what the entries say by themselves: contracts, graph keys."""
    project, declarations = machine.project, Declarations(machine.project)
    for module in [one for one in project.modules.values() if one is not None]:
        unit = whole_text(module.path)
        if module.path not in mine:
            continue
        text, before = project.texts.get(module.path, ""), declarations.texts
        seen = machine.segment(unit)
        machine.bases[unit] = frozenset((unit[:2],))
        try:
            if may_hold_contracts(text):
                seen.contract_faults += contract_faults(declarations, module)
            for cls in module.classes if may_hold_keys(text) else ():
                for key in key_formulae(cls):
                    seen.keys.setdefault(key.span, key)
        except Exception as error:  # as above
            project.crashed(error, module.name, module.path)
        seen.shape_texts = declarations.texts - before


def weighing(promises: Promises) -> Callable[[str], Weight]:
    """Weighs a function by its text; one that names what a pack describes works and tells."""
    return lambda segment: Weight(True, True) if promises.speaks_of(segment) else weight(segment)


def _segment(function: FunctionFacts, text: list[str]) -> str:
    return "\n".join(text[function.node.lineno - 1 : function.node.end_lineno])


def run_root(machine: Machine, function: FunctionFacts, cls: ClassFacts | None) -> None:
    """Interpret a function once with nothing known but types, names and its class's owner."""
    unit = unit_of(function, cls)
    machine.basis.add(unit)
    key = (function, cls)
    if key in machine.done or unit in machine.known:
        return
    machine.done.add(key)
    saved, machine.budget = machine.budget, ROOT_BUDGET
    outer, machine.unit = (machine.unit, machine.giver, machine.sites), unit
    machine.giver, machine.sites = unit, {}
    asked, machine.basis = machine.basis, set[Body | UnitKey | Basis]((function.body,))
    machine.facts = machine.segment(unit)
    place = function.module.span(function.node), unit[2]
    machine.facts.functions.add(place)
    receiver = _receiver(machine, function, cls)
    frame = Frame(
        machine,
        function.module,
        function,
        function.cls,
        State({}, Heap()),
        0,
        (function,),
        machine.scope_of(function),
        receiver,
        (id(function), id(cls)),
    )
    frame.acting = receiver.ref.owned if isinstance(receiver, Instance) else None
    try:
        frame.state.env.update(_parameters(frame, function, receiver))
        run_body(frame)
    except RecursionError:
        machine.facts.cut_short.add(place)
    finally:
        if machine.budget <= 0:
            machine.facts.cut_short.add(place)
        machine.budget = saved
        machine.bases[unit] = frozenset((*machine.bases.get(unit, ()), *machine.basis))
        (machine.unit, machine.giver, machine.sites), machine.basis = outer, asked
        machine.facts = machine.segment(machine.unit)


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
