"""Contracts that run time refuses as a whole: a name occurs once, or a field cannot be checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapecheck.diagnostics.model import Note, Span
from shapecheck.dims.places import empty, loose
from shapecheck.dims.vocabulary import lookup
from shapecheck.static.contracts.annotations import Reader, Refused, Unresolved, fields
from shapecheck.static.contracts.declared import Declarations
from shapecheck.static.contracts.marks import mark_of, phase_of, resolve_node, tool_name
from shapecheck.static.contracts.names import Names, Place
from shapecheck.static.contracts.texts import arguments
from shapecheck.static.facts import ContractFault
from shapecheck.static.index import ClassFacts, FunctionFacts, FunctionNode, ModuleFacts
from shapecheck.static.project import Project, parse_annotation

_YIELDS = {"Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator", "AsyncIterable"}


def carrier_faults(
    declarations: Declarations, cls: ClassFacts, mark: tuple[str, ast.expr]
) -> Iterator[ContractFault]:
    """What keeps a class from being a carrier."""
    name, decorator = mark
    project, module = declarations.project, cls.module
    if _is_no_dataclass(project, module, cls, decorator):
        yield _syntax(
            module.span(decorator),
            f"@{name} marks a dataclass and {cls.name} is none (yet); write @{name} above "
            "@dataclass",
            cls.name,
        )
    reader = Reader(project, module, declarations.per_call, None, cls, (cls,))
    for item in fields(cls):
        if isinstance(item.target, ast.Name):
            cell = f"{cls.name}.{item.target.id}"
            try:
                reader.read(item.annotation, cell)
            except Unresolved:
                continue
            except Refused as refused:
                yield _syntax(refused.span, refused.message, cell)


def _is_no_dataclass(
    project: Project, module: ModuleFacts, cls: ClassFacts, decorator: ast.expr
) -> bool:
    """Whether nothing below the mark could have made the class a dataclass."""
    below = cls.node.decorator_list[cls.node.decorator_list.index(decorator) + 1 :]
    for one in below:
        function = one.func if isinstance(one, ast.Call) else one
        found = resolve_node(project, module, function)
        if not (isinstance(found, str) and tool_name(found)):
            return False
    return True


def function_faults(
    declarations: Declarations, function: FunctionFacts, decorator: ast.expr
) -> Iterator[ContractFault]:
    """What keeps the contract of a function from checking anything."""
    module = function.module
    where = f"{function.cls.name}.{function.name}" if function.cls else function.name
    known, phase = declarations.per_call, phase_of(decorator)
    reader = Reader(declarations.project, module, known, phase, function.cls)
    try:
        given, results, has_dims = _occurrences(reader, function)
    except Unresolved:
        return
    except Refused as refused:
        yield _syntax(refused.span, refused.message, where)
        return
    if not any(one.tensors for one in (given, *results)):
        yield ContractFault(
            code="SHP103",
            message=empty(where),
            span=module.span(decorator),
            cell=where,
        )
        return
    binds = receiver_of(function) is None and not has_dims
    said: set[str] = set()
    for one in loose(given.places, [result.places for result in results]):
        per_call = known.get(one.name) or _is_per_call(one.name)
        message = one.fault(f"{one.place.path} of {where}", per_call=per_call, binds=binds)
        if message is None or (not one.is_mark and one.name in said):
            continue
        if one.is_mark:
            said.add(one.name)
        yield _loose(module, where, one.name, one.place, decorator, message)


def _loose(
    module: ModuleFacts, where: str, name: str, place: Place, decorator: ast.expr, message: str
) -> ContractFault:
    """The fault stands at the contract when the text is another definition's."""
    inside = "." not in place.path.removeprefix("argument ")
    note = Note(label="occurs", message=f"{name} of {place.path}", span=place.span)
    here = inside and place.span.path == module.path
    return ContractFault(
        code="SHP103",
        message=message,
        span=place.span if here else module.span(decorator),
        cell=where,
        notes=() if inside else (note,),
    )


def _occurrences(reader: Reader, function: FunctionFacts) -> tuple[Names, list[Names], bool]:
    """The names of the arguments, those of each result, and whether a parameter is Dims."""
    total, has_dims = Names(), False
    receiver, cls = receiver_of(function), function.cls
    for argument in arguments(function.node):
        path = f"argument {argument.arg}"
        if argument.arg == receiver == "self" and argument.annotation is None:
            mark = mark_of(reader.project, cls.module, cls.node) if cls is not None else None
            if cls is not None and mark is not None:
                total.add(reader.opened(cls, path))
        elif argument.annotation is not None and _is_dims(reader, argument.annotation):
            has_dims = True
        elif argument is function.node.args.kwarg:
            if reader.whole(argument.annotation, path).tensors:
                raise Refused(
                    reader.module.span(function.node),
                    "tensors in **kwargs have no names; name them",
                )
        else:
            many = argument is function.node.args.vararg
            total.add(reader.whole(argument.annotation, path), times=2 if many else 1)
    return total, _results(reader, function), has_dims


def _results(reader: Reader, function: FunctionFacts) -> list[Names]:
    returns = function.node.returns
    if not _is_generator(function.node):
        return [reader.whole(returns, "return")]
    items: list[ast.expr] = []
    if isinstance(returns, ast.Subscript):
        found = resolve_node(reader.project, reader.module, returns.value)
        if isinstance(found, str) and found.rpartition(".")[2] in _YIELDS:
            inner = returns.slice
            items = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    if not items:
        raise Unresolved
    results = [reader.whole(items[0], "yield")]
    return [*results, reader.whole(items[2], "return")] if len(items) == 3 else results


def _is_generator(node: FunctionNode) -> bool:
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(one))
    return False


def receiver_of(function: FunctionFacts) -> str | None:
    """The name of `self` or `cls`, as run time tells it; None for a plain function."""
    positional = [*function.node.args.posonlyargs, *function.node.args.args]
    if "staticmethod" in function.decorators or not positional:
        return None
    first = positional[0]
    own = function.cls is not None and first.annotation is None
    return first.arg if first.arg in ("self", "cls") or own else None


def _is_dims(reader: Reader, annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        inner = parse_annotation(annotation.value)
        return inner is not None and _is_dims(reader, inner)
    if isinstance(annotation, ast.BinOp):
        return _is_dims(reader, annotation.left) or _is_dims(reader, annotation.right)
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice
        items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        return any(_is_dims(reader, one) for one in items)
    found = resolve_node(reader.project, reader.module, annotation)
    if tool_name(found) == "Dims":
        return True
    return isinstance(found, ClassFacts) and any(
        tool_name(resolve_node(reader.project, one.module, base)) == "Dims"
        for one in reader.project.mro(found)
        for base in one.node.bases
    )


def _is_per_call(name: str) -> bool:
    known = lookup(name)
    return known is not None and known.per_call


def _syntax(span: Span, message: str, cell: str) -> ContractFault:
    return ContractFault(code="SHP101", message=message, span=span, cell=cell)
