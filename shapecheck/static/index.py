"""What one file defines: its names, classes and functions, before anything is interpreted.

An entry of the analysis is indexed as a whole; of an imported file only what stands outside its
definitions, each of which is indexed when its name is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from shapecheck.diagnostics.model import Span
from shapecheck.static.blocks import Block, Blocks
from shapecheck.static.owners import is_draft_flag
from shapecheck.static.walk import walk, walk_statements

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Import:
    """A name that an import binds: `module` alone, or `attribute` of it."""

    module: str
    attribute: str = ""


@dataclass(eq=False, slots=True)
class FunctionFacts:
    """One function or method; `kind` is `static`, `class`, `property` or `plain`.

    `body` is its path and qualified name, one pair for all that rest on it.
    """

    name: str
    qualname: str
    node: FunctionNode
    module: ModuleFacts
    cls: ClassFacts | None = None
    decorators: frozenset[str] = frozenset()
    kind: str = "plain"
    body: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.body = self.module.path, self.qualname


@dataclass(eq=False, slots=True)
class ClassFacts:
    """One class: its methods, annotated fields and their defaults.

    `linear` and `found` remember what a project answered: its bases, its methods by name.
    """

    name: str
    node: ast.ClassDef
    module: ModuleFacts
    methods: dict[str, FunctionFacts] = field(default_factory=dict[str, FunctionFacts])
    annotations: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    defaults: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    is_dataclass: bool = False
    stores: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    draft_flag: tuple[str, Span] | None = None
    linear: tuple[ClassFacts, ...] | None = None
    found: dict[str, FunctionFacts | None] = field(
        default_factory=dict[str, "FunctionFacts | None"]
    )


Binding = Import | FunctionFacts | ClassFacts | ast.expr


@dataclass(eq=False, slots=True)
class ModuleFacts:
    """One module: `path` is what reports show, `name` its dotted name.

    `resolved` and `named` remember what a project answered for a name and for an annotation.
    """

    name: str
    path: str
    is_package: bool
    lines: int
    bindings: dict[str, Binding | Block] = field(default_factory=dict[str, "Binding | Block"])
    functions: list[FunctionFacts] = field(default_factory=list[FunctionFacts])
    classes: list[ClassFacts] = field(default_factory=list[ClassFacts])
    resolved: dict[str, Resolved] = field(default_factory=dict[str, "Resolved"])
    named: dict[ast.expr, ClassFacts | None] = field(
        default_factory=dict[ast.expr, "ClassFacts | None"]
    )
    local_classes: dict[ast.ClassDef, ClassFacts] = field(
        default_factory=dict[ast.ClassDef, ClassFacts]
    )
    spans: dict[tuple[int, int], Span] = field(default_factory=dict[tuple[int, int], Span])

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> Span:
        """The place of a node, columns from 1; made once."""
        place = node.lineno, node.col_offset
        span = self.spans.get(place)
        if span is None:
            span = Span(path=self.path, line=place[0], column=place[1] + 1)
            self.spans[place] = span
        return span


Resolved = None | str | ModuleFacts | ClassFacts | FunctionFacts | tuple[ModuleFacts, ast.expr]


def index_module(
    tree: ast.Module, *, name: str, path: str, is_package: bool, lines: int
) -> ModuleFacts:
    """The facts of one parsed file."""
    module = ModuleFacts(name, path, is_package, lines)
    _index_block(tree.body, module, None, "")
    for node in _imports_in(tree):
        bind_import(node, module, module.bindings)
    return module


def index_outside(
    blocks: Blocks, rest: ast.Module, imports: ast.Module, module: ModuleFacts
) -> bool:
    """Index what stands outside the definitions; they are bound as they are.

    False when two of the imports in functions bind one name to two things: which of them counts
    is known only to those who see the whole file.
    """
    definitions = iter(blocks.definitions)
    block = next(definitions, None)
    for statement in rest.body:
        while block is not None and block.before < statement.lineno:
            module.bindings.setdefault(block.name, block)
            block = next(definitions, None)
        _index_block([statement], module, None, "")
    for left in ([block] if block else []), definitions:
        for one in left:
            module.bindings.setdefault(one.name, one)
    nested: dict[str, Binding | Block] = {}
    for node in (*_imports_in(rest), *_imports_in(imports)):
        names: dict[str, Binding | Block] = {}
        bind_import(node, module, names)
        for name, binding in names.items():
            if name not in module.bindings and nested.setdefault(name, binding) != binding:
                return False
    module.bindings |= {name: one for name, one in nested.items() if name not in module.bindings}
    return True


def index_definition(tree: ast.Module, module: ModuleFacts) -> None:
    """Index one definition of a module that was bound as a block."""
    _index_block(tree.body, module, None, "")


def _index_block(
    body: list[ast.stmt], module: ModuleFacts, cls: ClassFacts | None, prefix: str
) -> None:
    for statement in _flat(body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _index_function(statement, module, cls, prefix)
        elif isinstance(statement, ast.ClassDef):
            _index_class(statement, module, prefix, top=cls is None)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            bind_import(statement, module, module.bindings)
        elif cls is not None:
            _index_field(statement, cls)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    module.bindings.setdefault(target.id, statement.value)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            module.bindings.setdefault(statement.target.id, statement.value or statement.annotation)


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _flat(statement.body)
            yield from _flat(statement.orelse)
        elif isinstance(statement, (ast.Try, ast.TryStar)):
            yield from _flat(statement.body)
            for handler in statement.handlers:
                yield from _flat(handler.body)
            yield from _flat(statement.orelse)
        elif isinstance(statement, ast.With):
            yield from _flat(statement.body)
        else:
            yield statement


def _index_function(
    node: FunctionNode, module: ModuleFacts, cls: ClassFacts | None, prefix: str
) -> None:
    names = frozenset(_last_name(decorator) for decorator in node.decorator_list)
    facts = FunctionFacts(node.name, prefix + node.name, node, module, cls, names, _kind(names))
    module.functions.append(facts)
    if cls is None:
        module.bindings.setdefault(node.name, facts)
    elif not names & {"setter", "deleter"}:
        cls.methods.setdefault(node.name, facts)


def _kind(decorators: frozenset[str]) -> str:
    if "staticmethod" in decorators:
        return "static"
    if "classmethod" in decorators:
        return "class"
    return "property" if decorators & {"property", "cached_property"} else "plain"


def _index_class(node: ast.ClassDef, module: ModuleFacts, prefix: str, *, top: bool) -> None:
    facts = _class_facts(node, module)
    module.classes.append(facts)
    if top:
        module.bindings.setdefault(node.name, facts)
    _index_members(facts, prefix)


def index_local_class(node: ast.ClassDef, module: ModuleFacts, prefix: str) -> ClassFacts:
    """The facts of a class inside a function, the same ones whenever they are asked for."""
    facts = module.local_classes.get(node)
    if facts is None:
        facts = module.local_classes[node] = _class_facts(node, module)
        _index_members(facts, prefix)
    return facts


def _class_facts(node: ast.ClassDef, module: ModuleFacts) -> ClassFacts:
    decorators = {_last_name(decorator) for decorator in node.decorator_list}
    return ClassFacts(node.name, node, module, is_dataclass=bool(decorators & _DATACLASS))


def _index_members(facts: ClassFacts, prefix: str) -> None:
    node, module = facts.node, facts.module
    _index_block(node.body, module, facts, f"{prefix}{node.name}.")
    for method in facts.methods.values():
        _index_stores(method, facts)


_DATACLASS = {"dataclass", "carrier", "graph_buffers", "define", "frozen"}


def _index_field(statement: ast.stmt, cls: ClassFacts) -> None:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        cls.annotations[statement.target.id] = statement.annotation
        if statement.value is not None:
            cls.defaults[statement.target.id] = statement.value
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                cls.defaults[target.id] = statement.value


def _index_stores(method: FunctionFacts, cls: ClassFacts) -> None:
    arguments = [*method.node.args.posonlyargs, *method.node.args.args]
    if not arguments:
        return
    first = arguments[0].arg
    for statement in walk_statements(method.node.body):
        for target in _targets(statement):
            for node in walk(target):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Store)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == first
                ):
                    users = cls.stores.setdefault(node.attr, [])
                    if method.name not in users:
                        users.append(method.name)
        if isinstance(statement, ast.AnnAssign):
            target = statement.target
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                cls.annotations.setdefault(target.attr, statement.annotation)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            _index_base_call(statement.value, first, method, cls)
            named = _stored_by_name(statement.value, first)
            if named and method.name not in cls.stores.setdefault(named, []):
                cls.stores[named].append(method.name)


def _stored_by_name(call: ast.Call, first: str) -> str:
    """The field of `setattr(self, "x", value)` or `self.register_buffer("x", value)`, or ''."""
    function, arguments = call.func, call.args
    if isinstance(function, ast.Name) and function.id == "setattr" and len(arguments) == 3:
        holder, name = arguments[0], arguments[1]
    elif isinstance(function, ast.Attribute) and function.attr == "register_buffer" and arguments:
        holder, name = function.value, arguments[0]
    else:
        return ""
    is_own = isinstance(holder, ast.Name) and holder.id == first
    literal = isinstance(name, ast.Constant) and isinstance(name.value, str)
    return str(name.value) if is_own and literal and isinstance(name, ast.Constant) else ""


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        return [statement.target]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.optional_vars for item in statement.items if item.optional_vars is not None]
    return []


def _index_base_call(call: ast.Call, first: str, method: FunctionFacts, cls: ClassFacts) -> None:
    """A class that constructs its base as the draft's says whose it is."""
    if not _constructs_base(call.func, first, call.args):
        return
    for keyword in call.keywords:
        value = keyword.value
        is_true = isinstance(value, ast.Constant) and value.value is True
        if is_true and keyword.arg and is_draft_flag(keyword.arg):
            cls.draft_flag = (keyword.arg, method.module.span(value))


def _constructs_base(function: ast.expr, first: str, arguments: list[ast.expr]) -> bool:
    if not (isinstance(function, ast.Attribute) and function.attr == "__init__"):
        return False
    if isinstance(function.value, ast.Call):
        return isinstance(function.value.func, ast.Name) and function.value.func.id == "super"
    return bool(arguments) and isinstance(arguments[0], ast.Name) and arguments[0].id == first


def _imports_in(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in walk_statements(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node


def bind_import(
    node: ast.Import | ast.ImportFrom, module: ModuleFacts, names: dict[str, Binding | Block]
) -> None:
    """Bind what an import statement names; an earlier binding stays."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.split(".")[0]
            names.setdefault(alias.asname or top, Import(alias.name if alias.asname else top))
        return
    base = absolute_module(node, module)
    for alias in node.names:
        names.setdefault(alias.asname or alias.name, Import(base, alias.name))


def absolute_module(node: ast.ImportFrom, module: ModuleFacts) -> str:
    """The dotted name that a (relative) from-import reads from."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    drop = node.level - 1 if module.is_package else node.level
    base = parts[: len(parts) - drop] if drop else parts
    return ".".join([*base, *([node.module] if node.module else [])])


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
