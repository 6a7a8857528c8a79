"""What a name of the source stands for, as far as contracts care: shapecheck's own and others'."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Collection, Iterator

from shapecheck.static.index import ClassFacts, FunctionFacts, FunctionNode, Import, ModuleFacts
from shapecheck.static.project import Project, Resolved
from shapecheck.static.walk import walk_statements

_TOOL = "shapecheck"
_NAMED = re.compile(rf"{_TOOL}(?!\s*:)")  # anywhere but in a suppression
_MARKS = frozenset({"contract", "carrier", "graph_buffers"})
# Nothing in these is a carrier or declares a name.
_HARMLESS = frozenset(
    {*sys.stdlib_module_names, "builtins", "jaxtyping", "numpy", "torch", "typing_extensions"}
)


def may_hold_contracts(text: str) -> bool:
    """Whether a file is worth looking at for contracts."""
    return _NAMED.search(text) is not None or any(f"@{mark}" in text for mark in _MARKS)


def resolve_node(project: Project, module: ModuleFacts, node: ast.expr) -> Resolved:
    """What a name or a dotted name stands for; a builtin is `builtins.name`."""
    if isinstance(node, ast.Name):
        if node.id not in module.bindings and hasattr(builtins, node.id):
            return f"builtins.{node.id}"
        bound = module.bindings.get(node.id)
        if isinstance(bound, Import) and bound.attribute and _is_tool(bound.module):
            return f"{bound.module}.{bound.attribute}"
        return project.resolve(module, node.id)
    if isinstance(node, ast.Attribute):
        holder = resolve_node(project, module, node.value)
        if isinstance(holder, str):
            return f"{holder}.{node.attr}"
        if isinstance(holder, ModuleFacts):
            return project.resolve(holder, node.attr)
    return None


def tool_name(found: Resolved) -> str:
    """The public name of shapecheck that something is, or the empty text."""
    if isinstance(found, str):
        return found.rpartition(".")[2] if _is_tool(found) else ""
    if isinstance(found, FunctionFacts | ClassFacts):
        return found.name if _is_tool(found.module.name) else ""
    return ""


def _is_tool(dotted: str) -> bool:
    return dotted.partition(".")[0] == _TOOL


def is_harmless(dotted: str) -> bool:
    """Whether a name from outside the project surely is no carrier."""
    return dotted.partition(".")[0] in _HARMLESS or _is_tool(dotted)


def mark_of(
    project: Project, module: ModuleFacts, node: ast.ClassDef | FunctionNode
) -> tuple[str, ast.expr] | None:
    """Which of shapecheck's decorators a definition carries, and where, or None."""
    for decorator in node.decorator_list:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not may_name(module, function, _MARKS):
            continue
        name = tool_name(resolve_node(project, module, function))
        if name in _MARKS:
            return name, decorator
    return None


def may_name(module: ModuleFacts, node: ast.expr, names: Collection[str]) -> bool:
    """Whether it may be one of these public names of shapecheck.

    Told without following an import, which would load a file.
    """
    if isinstance(node, ast.Attribute):
        return node.attr in names
    if not isinstance(node, ast.Name):
        return False
    bound = module.bindings.get(node.id)
    if isinstance(bound, Import) and _is_tool(bound.module):
        return True
    return node.id in names


def phase_of(decorator: ast.expr) -> str | None:
    """The phase of `@contract(phase=...)`: empty for none, None where it is no literal."""
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
        if keyword.arg == "phase":
            value = keyword.value
            known = isinstance(value, ast.Constant) and isinstance(value.value, str | None)
            return str(value.value or "") if known and isinstance(value, ast.Constant) else None
    return ""


def definitions(
    module: ModuleFacts,
) -> Iterator[tuple[ast.ClassDef | FunctionNode, ClassFacts | FunctionFacts | None]]:
    """Every class and function of a module; the facts are None for one inside a function."""
    for cls in module.classes:
        yield cls.node, cls
    for function in module.functions:
        yield function.node, function
        for inner in walk_statements(function.node.body):
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield inner, None
