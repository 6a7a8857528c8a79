"""The whole run: entries found and filtered, every function interpreted, facts collected."""

from __future__ import annotations

import gc
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.static.attributes import name_owner
from shapecheck.static.expressions import evaluate
from shapecheck.static.facts import Facts
from shapecheck.static.functions import call_function, parameter_value
from shapecheck.static.heap import Heap
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.indices import unused_indices
from shapecheck.static.loader import UnreadableFileError, read_source
from shapecheck.static.machine import ROOT_BUDGET, Frame, Machine, State
from shapecheck.static.prefilter import can_matter, can_work
from shapecheck.static.project import Project, find_files, module_name
from shapecheck.static.statements import run_body
from shapecheck.static.suppressions import Suppression, find_suppressions
from shapecheck.static.values import UNKNOWN, ClassValue, Instance, Value

_STACK_BYTES = 512 * 1024 * 1024
_RECURSION_LIMIT = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What a run found out, before the rules judge it."""

    facts: Facts
    files: int
    skipped: int
    lines: int
    loaded_lines: int
    unreadable: tuple[Diagnostic, ...] = ()
    covered: frozenset[str] = frozenset()
    suppressions: tuple[Suppression, ...] = ()

    def covers(self, path: str) -> bool:
        """Whether a path belongs to the targets, whose findings are reported."""
        return path in self.covered


def analyse(root: Path, targets: list[Path]) -> Analysis:
    """Analyse the files at `targets`; imports inside `root` are followed when needed."""
    box: list[Analysis | BaseException] = []

    def work() -> None:
        try:
            box.append(_analyse(root, targets))
        except BaseException as error:  # re-raised below, in the caller's thread
            box.append(error)

    # Deeply nested programs need more stack than the main thread may have.
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


def _analyse(root: Path, targets: list[Path]) -> Analysis:
    project = Project(root)
    roots: list[FunctionFacts] = []
    covered: set[str] = set()
    suppressions: list[Suppression] = []
    files = skipped = lines = 0
    for target in targets:
        for file in find_files(target):
            files += 1
            shown = file.relative_to(root).as_posix()
            covered.add(shown)
            try:
                source = read_source(file, shown)
            except UnreadableFileError as error:
                project.unreadable[shown] = error.diagnostic
                continue
            lines += source.lines
            suppressions.extend(find_suppressions(source.text, shown))
            if not can_matter(source.text):
                skipped += 1
                continue
            name, is_package = module_name(file, root)
            facts = project.add(source, name, is_package=is_package)
            if facts is not None:
                text = source.text.splitlines()
                roots += [one for one in facts.functions if can_work(_segment(one, text))]
    machine = Machine(project, Facts(), run_body, run_root, evaluate, call_function)
    for function in roots:
        for fact in unused_indices(function):
            machine.facts.unused_indices.setdefault(fact.span, fact)
        run_root(machine, function, function.cls)
    return Analysis(
        facts=machine.facts,
        files=files,
        skipped=skipped,
        lines=lines,
        loaded_lines=project.loaded_lines,
        unreadable=tuple(project.unreadable[path] for path in sorted(project.unreadable)),
        covered=frozenset(covered),
        suppressions=tuple(suppressions),
    )


def _segment(function: FunctionFacts, text: list[str]) -> str:
    return "\n".join(text[function.node.lineno - 1 : function.node.end_lineno])


def run_root(machine: Machine, function: FunctionFacts, cls: ClassFacts | None) -> None:
    """Interpret a function once with nothing known but types, names and its class's owner."""
    key = (function, cls)
    if key in machine.done:
        return
    machine.done.add(key)
    saved, machine.budget = machine.budget, ROOT_BUDGET
    machine.facts.functions += 1
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
    frame.state.env.update(_parameters(frame, function, receiver))
    try:
        run_body(frame)
    except RecursionError:
        machine.facts.cut_short += 1
    if machine.budget <= 0:
        machine.facts.cut_short += 1
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
