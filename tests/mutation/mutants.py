"""Mutants: the engine with one expression changed; any prefix of their order is a fair sample.

A mutant's key is made of what it changes and of the function that is in, not of line numbers: it
stays while other places of the engine change. A tenth of the keys are the pilot: the mutants that
may be looked at while the checker is worked on. The sample that is reported holds none of them.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from tests.mutation.rules import RULES, Rule

# What handles tensors on the way of a token; models are built and read elsewhere.
SCOPE = (
    "carriers/*.py",
    "dims.py",
    "engine.py",
    "attention/sdpa.py",
    "graphs/*.py",
    "kv/pool.py",
    "kv/table.py",
    "models/base.py",
    "models/eagle.py",
    "models/eagle_config.py",
    "models/llama.py",
    "models/layers/*.py",
    "phases/*.py",
    "proposers/*.py",
    "sampling/*.py",
    "scheduler/live.py",
    "scheduler/prompts.py",
    "tree/*.py",
)
# Texts for people and hints for type checkers are no code that runs.
_QUIET = (ast.Raise, ast.JoinedStr, ast.Assert)
_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list"}
_LOOSE = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.UnaryOp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit: `lines` are those of the statement it is in, `path` is relative to the engine."""

    key: str
    rule: str
    path: str
    line: int
    lines: tuple[int, int]
    before: str
    after: str
    source: str


def mutants(root: Path) -> list[Mutant]:
    """Every mutant of the engine in `root`, the rules taking turns, each in the order of hashes."""
    texts = {path: path.read_text() for pattern in SCOPE for path in sorted(root.glob(pattern))}
    groups = [_of_rule(rule, root, texts) for rule in RULES]
    ordered = [one for turn in zip_longest(*groups) for one in turn if one is not None]
    # What two rules make alike is the first one's.
    unique = {(one.path, one.source): one for one in reversed(ordered)}
    return list(unique.values())[::-1]


def sample(found: Sequence[Mutant], name: Literal["pilot", "final", "all"]) -> list[Mutant]:
    """The mutants of this sample, in order."""
    wanted = {"pilot": (True,), "final": (False,), "all": (True, False)}[name]
    return [one for one in found if _is_pilot(one) in wanted]


def _is_pilot(mutant: Mutant) -> bool:
    return int(hashlib.sha256(f"pilot {mutant.key}".encode()).hexdigest(), 16) % 10 == 0


def _of_rule(rule: Rule, root: Path, texts: dict[Path, str]) -> list[Mutant]:
    made: dict[str, Mutant] = {}
    alike: Counter[str] = Counter()
    for path, text in texts.items():
        for node, where, lines in _places(ast.parse(text)):
            for target, after in rule.find(node):
                mutant = _mutant(rule, str(path.relative_to(root)), text, lines, target, after)
                if mutant is not None:
                    edit = f"{mutant.path} {where} {mutant.before} {mutant.after}"
                    key = hashlib.sha256(f"{edit} {alike[edit]}".encode()).hexdigest()[:12]
                    alike[edit] += 1
                    made[key] = replace(mutant, key=key)
    return [made[key] for key in sorted(made)]


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, tuple[int, int]]]:
    """Every node that runs, with the name of its function and the lines of its statement."""
    pending: list[tuple[ast.AST, str, tuple[int, int]]] = [(tree, "", (1, 1))]
    while pending:
        node, where, lines = pending.pop()
        if isinstance(node, _QUIET) or _is_invariant(node):
            continue
        if isinstance(node, ast.stmt):
            lines = (node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            where = f"{where}.{node.name}"
        yield node, where, lines
        for name, value in ast.iter_fields(node):
            if name not in _SKIPPED_FIELDS:
                children: Sequence[object] = value if isinstance(value, list) else [value]
                # The first child is taken first: equal edits count from the top of a function.
                pending += [
                    (one, where, lines) for one in reversed(children) if isinstance(one, ast.AST)
                ]


def _is_invariant(node: ast.AST) -> bool:
    """Invariants belong to the contracts: a mutant of one is a fault of the checker."""
    marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any("invariant" in ast.unparse(mark) for mark in marks)


def _mutant(
    rule: Rule, path: str, text: str, lines: tuple[int, int], node: ast.expr | ast.stmt, after: str
) -> Mutant | None:
    before = ast.get_source_segment(text, node)
    if before is None or _same(before, after):
        return None
    changed = _replaced(text, node, _bracketed(node, after))
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return Mutant(
        key="",
        rule=rule.name,
        path=path,
        line=node.lineno,
        lines=lines,
        before=" ".join(before.split()),
        after=" ".join(after.split()),
        source=changed,
    )


def _same(before: str, after: str) -> bool:
    try:
        return ast.dump(ast.parse(f"({before})")) == ast.dump(ast.parse(f"({after})"))
    except SyntaxError:
        return False


def _bracketed(node: ast.expr | ast.stmt, after: str) -> str:
    """`after`, in brackets where it binds less than what it replaces."""
    if isinstance(node, ast.Tuple):
        return after
    parsed = ast.parse(after, mode="eval").body
    return f"({after})" if isinstance(parsed, _LOOSE) else after


def _replaced(text: str, node: ast.expr | ast.stmt, after: str) -> str:
    lines = text.encode().splitlines(keepends=True)
    assert node.end_lineno is not None, "a parsed node knows its end"
    assert node.end_col_offset is not None, "a parsed node knows its end"
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    data = text.encode()
    return (data[:start] + after.encode() + data[end:]).decode()
