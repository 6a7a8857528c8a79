"""Load one function or class out of a source tree, without importing its package.

The names it uses are found in the source on demand, statement by statement; what cannot be had
(a compiled extension, a package that is not installed) becomes a Stub.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from shapecheck.errors import ShapecheckError
from shapecheck.symbolic.constructs import SHADOWS
from shapecheck.symbolic.stub import Stub, Used

_LOAD = "__shapecheck_load__"


@dataclass(slots=True)
class SourceTree:
    """A folder that holds packages as source; modules are read from it as they are needed."""

    root: Path
    used: Used
    failures: dict[str, str] = field(default_factory=dict[str, str])
    _modules: dict[str, LazyModule] = field(default_factory=dict[str, "LazyModule"])

    def load(self, target: str) -> Any:
        """The object that `package.module:Qualified.name` names; raises ShapecheckError."""
        module, _, qualname = target.partition(":")
        if not qualname:
            raise ShapecheckError(f"{target!r}: write MODULE:QUALNAME, as in a.b:Class.method")
        if self.path_of(module) is None:
            raise ShapecheckError(f"{target!r}: no file of module {module} below {self.root}")
        first, *rest = qualname.split(".")
        value = self.attribute(module, first)
        for name in rest:
            value = getattr(value, name, None)
        if value is None or isinstance(value, Stub):
            why = self.failures.get(f"{module}.{first}", f"{module} defines no {qualname}")
            raise ShapecheckError(f"{target!r} cannot be loaded from {self.root}: {why}")
        return value

    def path_of(self, module: str) -> Path | None:
        """The file of a module below the root, or None."""
        base = self.root.joinpath(*module.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
        return None

    def attribute(self, module: str, name: str) -> Any:
        """`from module import name`, from the tree, from this installation, or a Stub."""
        path = self.path_of(module)
        if path is None:
            return self.outside(module, name)
        if module not in self._modules:
            self._modules[module] = LazyModule(self, module, path)
        try:
            return self._modules[module][name]
        except KeyError:
            full = f"{module}.{name}"
            return Namespace(self, full) if self.path_of(full) else Stub(full, self.used)

    def module(self, module: str) -> Any:
        """`import module`: a namespace of the tree, a real module, or a Stub."""
        if self.path_of(module) is not None:
            return Namespace(self, module)
        return self.outside(module, None)

    def outside(self, module: str, name: str | None) -> Any:
        """A module of this installation or its attribute; a Stub when it cannot be imported."""
        full = module if name is None else f"{module}.{name}"
        if module and self.path_of(module.partition(".")[0]) is None:
            try:
                imported = importlib.import_module(module)
                return imported if name is None else getattr(imported, name)
            except Exception:  # an import may fail in any way; the stub says that it did
                return Stub(full, self.used)
        return Stub(full, self.used)


@dataclass(frozen=True, slots=True)
class Namespace:
    """A module of the tree, seen as an attribute holder."""

    tree: SourceTree
    module: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.tree.attribute(self.module, name)


class LazyModule(dict[str, Any]):
    """The globals of one module; a missing name runs the statement that binds it."""

    def __init__(self, tree: SourceTree, name: str, path: Path) -> None:
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        super().__init__(__name__=name, __file__=str(path), __package__=package)
        self[_LOAD] = self._import
        self["__builtins__"] = builtins
        self.update(SHADOWS)
        self._tree = tree
        self._path = path
        source = path.read_text(encoding="utf-8")
        try:
            parsed = ast.parse(source, filename=str(path))
        except SyntaxError as error:
            raise ShapecheckError(
                f"{path}:{error.lineno}: {error.msg}; Python {error.text or ''} cannot be parsed"
            ) from None
        self._flags = _future_flags(parsed)
        self._bound: dict[str, list[ast.stmt]] = {}
        for statement in parsed.body:
            for bound in _binds(statement):
                self._bound.setdefault(bound, []).append(statement)
        self._stars = [
            _absolute(statement, package)
            for statement in self._bound.pop("*", [])
            if isinstance(statement, ast.ImportFrom)
        ]
        self._running: set[str] = set()

    def __missing__(self, name: str) -> Any:
        statements = self._bound.get(name)
        if statements is None or name in self._running:
            self[name] = self._from_star(name)
            return self[name]
        self._running.add(name)
        try:
            for statement in statements:
                self._run(statement)
        except Exception as error:  # module-level code may need what is not here
            self._tree.failures[f"{self['__name__']}.{name}"] = f"{type(error).__name__}: {error}"
        finally:
            self._running.discard(name)
        if name not in self:
            self[name] = Stub(f"{self['__name__']}.{name}", self._tree.used)
        return self[name]

    def _from_star(self, name: str) -> Any:
        for module in self._stars:
            value = self._tree.attribute(module, name)
            if not isinstance(value, Stub):
                return value
        raise KeyError(name)

    def _run(self, statement: ast.stmt) -> None:
        # A class body looks its names up without __missing__, so they must be there before.
        for needed in _read_at_once(statement):
            if needed not in self and needed in self._bound and needed not in self._running:
                self.__missing__(needed)
        with _as_module(self):
            exec(self._compile(statement), self)

    def _compile(self, statement: ast.stmt) -> CodeType:
        module = _Imports(self["__package__"]).visit(ast.Module(body=[statement], type_ignores=[]))
        ast.fix_missing_locations(module)
        return compile(module, str(self._path), "exec", flags=self._flags, dont_inherit=True)

    def _import(self, module: str, name: str | None) -> Any:
        if name is None:
            return self._tree.module(module)
        return self._tree.attribute(module, name)


class _Imports(ast.NodeTransformer):
    """Turns imports into loads from the tree."""

    def __init__(self, package: str) -> None:
        self._package = package

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """`from m import a` becomes `a = load("m", "a")`."""
        module = _absolute(node, self._package)
        return [
            _assign(node, alias.asname or alias.name, module, alias.name) for alias in node.names
        ]

    def visit_Import(self, node: ast.Import) -> Any:
        """`import a.b` binds a, `import a.b as c` binds the module itself."""
        return [
            _assign(
                node,
                alias.asname or alias.name.partition(".")[0],
                alias.name if alias.asname else alias.name.partition(".")[0],
                None,
            )
            for alias in node.names
        ]


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


@contextmanager
def _as_module(content: LazyModule) -> Generator[None]:
    # dataclasses looks its class's module up while it reads annotations that are strings.
    name = content["__name__"]
    if name in sys.modules:
        yield
        return
    shell = ModuleType(name)
    shell.__dict__.update(content)
    sys.modules[name] = shell
    try:
        yield
    finally:
        del sys.modules[name]


def _assign(node: ast.stmt, target: str, module: str, name: str | None) -> ast.stmt:
    call = ast.Call(
        func=ast.Name(id=_LOAD, ctx=ast.Load()),
        args=[ast.Constant(module), ast.Constant(name)],
        keywords=[],
    )
    assignment = ast.Assign(targets=[ast.Name(id=target, ctx=ast.Store())], value=call)
    return ast.copy_location(assignment, node)


def _binds(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.If(body=body, orelse=orelse):
            for inner in [*body, *orelse]:
                yield from _binds(inner)
        case ast.Try(body=body, handlers=handlers, orelse=orelse):
            parts = [*body, *orelse, *(part for handler in handlers for part in handler.body)]
            for inner in parts:
                yield from _binds(inner)
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def _read_at_once(statement: ast.stmt) -> Iterator[str]:
    """The names a statement reads when it runs, without the bodies of functions."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += [*node.decorator_list, node.args]
            pending += [node.returns] if node.returns is not None else []
        elif not isinstance(node, ast.Lambda):
            pending += ast.iter_child_nodes(node)


def _future_flags(tree: ast.Module) -> int:
    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= getattr(__future__, alias.name).compiler_flag
    return flags
