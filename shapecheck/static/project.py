"""The program under analysis: modules read, and their definitions parsed, when first needed."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from shapecheck.diagnostics.model import Diagnostic, Span
from shapecheck.static.blocks import Block, cut
from shapecheck.static.compact import compacted, pack
from shapecheck.static.crash import internal_error
from shapecheck.static.folders import Folders
from shapecheck.static.index import (
    Binding,
    ClassFacts,
    FunctionFacts,
    Import,
    ModuleFacts,
    Resolved,
    index_definition,
    index_module,
    index_outside,
)
from shapecheck.static.loader import Source, UnreadableFileError, parse_source, read_source

# Known by their operators: their own source, beside an installed engine, says less than the table.
_LIBRARIES = {"torch", "numpy"}
_SKIPPED_FOLDERS = {"__pycache__", ".git", ".venv", "node_modules", ".tox", ".mypy_cache"}


@dataclass(eq=False, slots=True)
class Project:
    """Modules by dotted name, loaded lazily below `root`.

    `given` are sources that were read before, by name, and whether each is a package's `__init__`.
    `crashes` are our mistakes while a file was indexed, which cost that file alone.
    """

    root: Path
    modules: dict[str, ModuleFacts | None] = field(default_factory=dict[str, "ModuleFacts | None"])
    unreadable: dict[str, Diagnostic] = field(default_factory=dict[str, Diagnostic])
    crashes: dict[str, Diagnostic] = field(default_factory=dict[str, Diagnostic])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    absent: set[str] = field(default_factory=set[str])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    given: dict[str, tuple[Source, bool]] = field(default_factory=dict[str, tuple[Source, bool]])
    folders: Folders = field(init=False)

    def __post_init__(self) -> None:
        self.folders = Folders(self.root)

    def add(
        self, source: Source, name: str, *, is_package: bool, whole: bool = False
    ) -> ModuleFacts | None:
        """The facts of a source, indexed once; None when it cannot be parsed.

        `whole` lists every function of it; else its definitions wait until they are asked for.
        """
        if name in self.modules:
            return self.modules[name]
        self.modules[name] = None
        self.texts[source.path] = source.text
        try:
            facts = None if whole else _index_lazily(source, name, is_package=is_package)
            if facts is None:
                facts = index_module(
                    compacted(parse_source(source)),
                    name=name,
                    path=source.path,
                    is_package=is_package,
                    lines=source.lines,
                )
        except UnreadableFileError as error:
            self.unreadable[source.path] = error.diagnostic
            return None
        except RecursionError:
            error = _too_deep(source.path)
            self.unreadable[source.path] = error.diagnostic
            return None
        self.modules[name] = facts
        self.lines[source.path] = facts.lines
        return facts

    def module(self, name: str) -> ModuleFacts | None:
        """The module of this dotted name, if a file below the root has it and no table does."""
        if name.partition(".")[0] in _LIBRARIES:
            return None
        if name in self.modules:
            return self.modules[name]
        given = self.given.get(name)
        found = self._file(name) if given is None else (given[0].path, given[1])
        if found is not None:
            shown, is_package = found
            try:
                source = read_source(self.root / shown, shown) if given is None else given[0]
                return self.add(source, name, is_package=is_package)
            except UnreadableFileError as error:
                self.unreadable[shown] = error.diagnostic
            except Exception as error:  # our mistake in one file must not cost those that import it
                self.crashed(error, name, shown)
        self.modules[name] = None
        return None

    def _file(self, name: str) -> tuple[str, bool] | None:
        """The file of a dotted name, and whether it is a package's `__init__`."""
        base = name.replace(".", "/")
        for shown, is_package in ((f"{base}.py", False), (f"{base}/__init__.py", True)):
            if name and self.folders.holds_file(shown):
                return shown, is_package
            if name:
                self.absent.add(shown)
        return None

    def resolve(self, module: ModuleFacts, name: str) -> Resolved:
        """What a global name of a module stands for, imports followed."""
        if name not in module.resolved:
            binding = self.bound(module, name)
            module.resolved[name] = self._follow(binding, module, name, set())
        return module.resolved[name]

    def bound(self, module: ModuleFacts, name: str) -> Binding | None:
        """What a module binds a name to; a definition is parsed now if it was not before."""
        binding = module.bindings.get(name)
        if not isinstance(binding, Block):
            return binding
        del module.bindings[name]
        try:
            source = Source(path=module.path, text="\n" * binding.before + binding.text)
            functions: list[ast.FunctionDef] = []
            index_definition(compacted(parse_source(source), functions), module)
            pack(functions, binding, module.path)
        except (UnreadableFileError, RecursionError) as error:
            fault = error if isinstance(error, UnreadableFileError) else _too_deep(module.path)
            self.unreadable.setdefault(module.path, fault.diagnostic)
            return None
        except Exception as error:  # as in `module`
            self.crashed(error, module.name, module.path)
            module.bindings.pop(name, None)
            return None
        return cast("Binding | None", module.bindings.get(name))

    def drop_bodies(self) -> None:
        """Let go of what is inside functions, the most of every tree: nobody will interpret it."""
        for module in self.modules.values():
            for function in module.functions if module is not None else ():
                function.node.body = []

    def crashed(self, error: Exception, name: str, path: str) -> None:
        """Remember what was raised while a file was indexed, the first of each file."""
        self.crashes.setdefault(path, internal_error(error, name, Span(path=path, line=1)))

    def _follow(
        self,
        binding: Binding | None,
        module: ModuleFacts,
        name: str,
        seen: set[tuple[str, str]],
    ) -> Resolved:
        if binding is None:
            return None
        if not isinstance(binding, Import):
            return (module, binding) if isinstance(binding, ast.expr) else binding
        if (module.name, name) in seen:
            return None
        seen.add((module.name, name))
        if not binding.attribute:
            return self.dotted(binding.module)
        source = self.module(binding.module)
        if source is None:
            return f"{binding.module}.{binding.attribute}"
        inner = self.bound(source, binding.attribute)
        if inner is not None and source is not module:
            return self._follow(inner, source, binding.attribute, seen)
        below = self.module(f"{binding.module}.{binding.attribute}")
        return below if below is not None else None

    def dotted(self, name: str) -> Resolved:
        """A module of the project, or the dotted name of something outside it."""
        return self.module(name) or name

    def mro(self, cls: ClassFacts) -> tuple[ClassFacts, ...]:
        """The class and its known bases, nearest first; cycles are cut."""
        if cls.linear is None:
            cls.linear = (cls,)
            order = {cls: None}
            for base in cls.node.bases:
                known = self.class_of(cls.module, base)
                if known is not None and known is not cls:
                    order.update(dict.fromkeys(self.mro(known)))
            cls.linear = tuple(order)
        return cls.linear

    def method(self, cls: ClassFacts, name: str) -> FunctionFacts | None:
        """The method that an attribute of the class finds."""
        if name not in cls.found:
            own = (one.methods[name] for one in self.mro(cls) if name in one.methods)
            cls.found[name] = next(own, None)
        return cls.found[name]

    def class_of(self, module: ModuleFacts, node: ast.expr | None) -> ClassFacts | None:
        """The project class that an annotation or a base names; Optional is looked through."""
        if node is None:
            return None
        if node not in module.named:
            module.named[node] = self._class_of(module, node)
        return module.named[node]

    def _class_of(self, module: ModuleFacts, node: ast.expr) -> ClassFacts | None:
        if isinstance(node, ast.Name):
            found = self.resolve(module, node.id)
            return found if isinstance(found, ClassFacts) else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            holder = self.resolve(module, node.value.id)
            if isinstance(holder, ModuleFacts):
                found = self.resolve(holder, node.attr)
                return found if isinstance(found, ClassFacts) else None
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.class_of(module, parse_annotation(node.value))
        if isinstance(node, ast.Subscript):
            if annotation_head(node) not in ("Optional", "Union", "Annotated", "Type", "type"):
                return self.class_of(module, node.value)
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return next(filter(None, (self.class_of(module, one) for one in inner)), None)
        if isinstance(node, ast.BinOp):
            return self.class_of(module, node.left) or self.class_of(module, node.right)
        return None


def annotation_head(node: ast.expr | None) -> str:
    """The last name of an annotation: `Tensor` of `torch.Tensor`, `Optional` of `Optional[X]`."""
    if isinstance(node, ast.Subscript):
        return annotation_head(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def parse_annotation(text: str) -> ast.expr | None:
    """The expression of a quoted annotation, or None when it is none."""
    if len(text) > 500:
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def find_files(target: Path, unreadable: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """Every Python file at or below the target, sorted; links to folders are not followed.

    `unreadable` hears of the folders that cannot be listed.
    """
    if target.is_file():
        yield target
        return
    for folder, folders, files in os.walk(target, onerror=unreadable, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in sorted(files):
            if name.endswith(".py"):
                yield Path(folder, name)


def module_name(file: Path, root: Path) -> tuple[str, bool]:
    """The dotted name of a file below the root, and whether it is a package's `__init__`."""
    parts = list(file.relative_to(root).with_suffix("").parts)
    if parts and parts[-1] == "__init__":
        return ".".join(parts[:-1]), True
    return ".".join(parts), False


def _index_lazily(source: Source, name: str, *, is_package: bool) -> ModuleFacts | None:
    """The facts of what stands outside the definitions; None when the whole has to be read."""
    blocks = cut(source.text)
    if blocks is None or not blocks.definitions:
        return None
    module = ModuleFacts(name, source.path, is_package, source.lines)
    try:
        rest = compacted(parse_source(Source(path=source.path, text=blocks.rest)))
        imports = parse_source(Source(path=source.path, text=blocks.imports))
    except UnreadableFileError:
        return None
    return module if index_outside(blocks, rest, imports, module) else None


def _too_deep(path: str) -> UnreadableFileError:
    from shapecheck.static.loader import unreadable

    return unreadable(path, "it is nested too deeply to analyse", "exclude the path")
