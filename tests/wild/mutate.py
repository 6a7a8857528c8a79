"""Owner flips: each read of one model's size becomes the same read of the other model's.

A mutant is made by rule from the source, one read at a time:

- `path`: a size is read from a config that a class reaches by a path of `PATHS`; the path is
  replaced by the class's path to the other model's config. A local name that holds the config
  counts as its path.
- `accessor`: two classes answer `hidden_size_for(worker)`, one for each phase; the other is asked.

Reads that cannot size a tensor are left out: those that only reach a comparison, an assertion or a
message, and names that say themselves whose size they are (`draft_vocab_size`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

SIZES = frozenset({"hidden_size", "spec_hidden_size", "vocab_size"})
ACCESSOR = "hidden_size_for"
ACCESSOR_MODULE = "sglang.srt.speculative.eagle_info"
PHASES = ("EagleDraftInput", "EagleDraftExtendInput")
_TARGET = "target_worker.model_runner.model_config"
# Class: its paths to the draft's config and to the target's; the first of a side is written.
PATHS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "EagleDraftInput": (("_draft_runner_of(worker).model_config",), (f"worker.{_TARGET}",)),
    "EagleDraftExtendInput": (("_draft_runner_of(worker).model_config",), (f"worker.{_TARGET}",)),
    "EAGLEDraftExtendCudaGraphRunner": (
        ("self.model_runner.model_config",),
        (f"self.eagle_worker.{_TARGET}",),
    ),
    "MultiLayerEagleDraftExtendCudaGraphRunner": (
        ("self.model_runner.model_config",),
        (f"self.eagle_worker.{_TARGET}",),
    ),
    "MultiLayerEagleDraftWorker": (
        ("self.draft_worker.model_config",),
        ("self.target_worker.model_config", "self.model_config"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One flipped read: the file, the place, and the text before and after.

    `first` and `last` are the lines of the statement that holds the read.
    """

    path: str
    line: int
    column: int
    first: int
    last: int
    rule: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """What the mutant is called in reports and in the committed list."""
        return f"{self.path}:{self.line}:{self.column}"

    def applied(self, text: str) -> str:
        """The source with this one read flipped."""
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1]
        start = self.column - 1
        assert line[start:].startswith(self.before), f"{self.name}: the source has changed"
        lines[self.line - 1] = line[:start] + self.after + line[start + len(self.before) :]
        if self.rule == "accessor" and not _binds(text, self.after):
            # Else the mutant would be a program that stops at an unknown name. At the end, so that
            # every line keeps its number; the name is bound before any method runs.
            lines.append(f"\nfrom {ACCESSOR_MODULE} import {self.after}\n")
        return "".join(lines)


def _binds(text: str, name: str) -> bool:
    """Whether a module defines or imports a name."""
    return any(
        (isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names))
        or (isinstance(node, ast.ClassDef) and node.name == name)
        for node in ast.walk(ast.parse(text))
    )


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """Every mutant of one file, in the order of the source."""
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found: list[Mutant] = []
    for cls in ast.walk(tree):
        if isinstance(cls, ast.ClassDef):
            for function in ast.walk(cls):
                if isinstance(function, ast.FunctionDef):
                    found += _in_function(path, cls, function, parents)
    unique = {one.name: one for one in found}
    yield from sorted(unique.values(), key=lambda one: (one.line, one.column))


Parents = dict[ast.AST, ast.AST]


def _in_function(
    path: str, cls: ast.ClassDef, function: ast.FunctionDef, parents: Parents
) -> Iterator[Mutant]:
    configs = _local_configs(function)
    for node in ast.walk(function):
        flipped: tuple[str, ast.expr, str] | None = None
        if isinstance(node, ast.Call):
            flipped = _accessor(node)
        elif isinstance(node, ast.Attribute) and node.attr in SIZES:
            flipped = _config_read(cls.name, node, configs)
        if flipped is None or not _can_size(node, function, parents):
            continue
        rule, part, after = flipped
        if part.lineno != part.end_lineno:
            continue
        before, statement = ast.unparse(part), _statement(part, parents)
        yield Mutant(
            path=path,
            line=part.lineno,
            column=part.col_offset + 1,
            first=statement.lineno,
            last=statement.end_lineno or statement.lineno,
            rule=rule,
            before=before,
            after=after,
        )


def _statement(node: ast.expr, parents: Parents) -> ast.stmt:
    above: ast.AST = node
    while not isinstance(above, ast.stmt):
        above = parents[above]
    return above


def _accessor(node: ast.Call) -> tuple[str, ast.expr, str] | None:
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != ACCESSOR:
        return None
    phase = function.value
    if not isinstance(phase, ast.Name) or phase.id not in PHASES:
        return None
    other = PHASES[1 - PHASES.index(phase.id)]
    return "accessor", phase, other


def _config_read(
    cls: str, node: ast.Attribute, configs: dict[str, str]
) -> tuple[str, ast.expr, str] | None:
    config = node.value
    if isinstance(config, ast.Attribute) and config.attr in ("hf_config", "hf_text_config"):
        config = config.value
    written = ast.unparse(config)
    text = configs.get(written, written)
    sides = PATHS.get(cls)
    if sides is None:
        return None
    for mine, other in (sides, sides[::-1]):
        if text in mine:
            return "path", config, other[0]
    return None


def _local_configs(function: ast.FunctionDef) -> dict[str, str]:
    """Local names that are assigned once, and a config: the path that they stand for."""
    assigned: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(ast.unparse(node.value))
    return {name: texts[0] for name, texts in assigned.items() if len(texts) == 1}


def _can_size(node: ast.expr, function: ast.FunctionDef, parents: Parents) -> bool:
    """Whether the value goes on to a call, a field or a caller, not only to a test or a text."""
    child, parent = node, parents[node]
    while parent is not function:
        if isinstance(parent, ast.Compare | ast.Assert | ast.Raise | ast.JoinedStr):
            return False
        if isinstance(parent, ast.Call) and not _converts(parent):
            return not _is_check(parent)
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            name = parent.targets[0].id
            uses = (
                one
                for one in ast.walk(function)
                if isinstance(one, ast.Name)
                and one.id == name
                and isinstance(one.ctx, ast.Load)
                and one.lineno > child.lineno
            )
            return any(_can_size(one, function, parents) for one in uses)
        if isinstance(parent, ast.Return | ast.Assign):
            return True
        child, parent = parent, parents[parent]
    return False


def _converts(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("int", "max", "min", "getattr")


def _is_check(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    return name.startswith(("maybe_detect", "check", "assert", "warning", "info", "debug"))
