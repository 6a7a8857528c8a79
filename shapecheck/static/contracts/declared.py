"""The names that a project adds to the vocabulary, read from its calls of `declare`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from shapecheck.static.contracts.marks import resolve_node, tool_name
from shapecheck.static.index import Import, ModuleFacts
from shapecheck.static.loader import Source, UnreadableFileError, parse_source
from shapecheck.static.project import Project
from shapecheck.static.walk import walk


@dataclass(eq=False, slots=True)
class Declarations:
    """Whether each declared name binds per call, by what was loaded so far.

    `complete` unless a name is no literal, or a module that may declare some is missing. `texts`
    counts the shape texts that were held against them.
    """

    project: Project
    per_call: dict[str, bool] = field(default_factory=dict[str, bool])
    complete: bool = True
    texts: int = 0
    _scanned: set[str] = field(default_factory=set[str])
    _followed: set[str] = field(default_factory=set[str])

    def refresh(self) -> None:
        """Read the modules that were loaded since the last time."""
        for module in [one for one in self.project.modules.values() if one is not None]:
            if module.name in self._scanned:
                continue
            self._scanned.add(module.name)
            text = self.project.texts.get(module.path, "")
            if not may_declare(text) or module.name.partition(".")[0] == "shapecheck":
                continue
            for call in _calls(self.project, module, text):
                name = _literal(call.args[0] if call.args else None)
                if isinstance(name, str):
                    self.per_call[name] = _binds_per_call(call)
                else:
                    self.complete = False

    def follow(self, start: ModuleFacts) -> None:
        """Load what a module imports, the packages around it included, and read that too."""
        waiting = [start]
        while waiting:
            module = waiting.pop()
            for name, is_module in _imported(module):
                top = name.partition(".")[0]
                if name in self._followed or top in ("", "shapecheck"):
                    continue
                self._followed.add(name)
                found = self.project.module(name)
                if found is not None:
                    waiting.append(found)
                elif is_module and self.project.module(top) is not None:
                    self.complete = False
        self.refresh()


def may_declare(text: str) -> bool:
    """Whether a file may add names to the vocabulary."""
    return "declare" in text


def _imported(module: ModuleFacts) -> Iterator[tuple[str, bool]]:
    """The modules that are run for a module, and whether each surely is one."""
    parts = module.name.split(".")
    for length in range(1, len(parts)):
        yield ".".join(parts[:length]), False
    for binding in module.bindings.values():
        if isinstance(binding, Import):
            yield binding.module, True
            if binding.attribute:
                yield f"{binding.module}.{binding.attribute}", False


def _calls(project: Project, module: ModuleFacts, text: str) -> Iterator[ast.Call]:
    try:
        tree = parse_source(Source(path=module.path, text=text))
    except UnreadableFileError:
        return
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            last = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            bound = module.bindings.get(last)
            named = last == "declare" or (isinstance(bound, Import) and bound.attribute)
            if named and tool_name(resolve_node(project, module, node.func)) == "declare":
                yield node


def _binds_per_call(call: ast.Call) -> bool:
    given = {one.arg: _literal(one.value) for one in call.keywords}
    per_call = given.get("per_call")
    return per_call if isinstance(per_call, bool) else given.get("owner") == "batch"


def _literal(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None
