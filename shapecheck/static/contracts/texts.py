"""Shape texts and marks that do not parse, and axis names that nobody declared."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapecheck.dims.parse import shape_faults
from shapecheck.errors import ContractTextError
from shapecheck.markers import IndexOf
from shapecheck.static.contracts.annotations import Reader
from shapecheck.static.contracts.declared import Declarations
from shapecheck.static.contracts.mark_calls import mark_made
from shapecheck.static.facts import ContractFault
from shapecheck.static.index import FunctionNode, ModuleFacts
from shapecheck.static.project import parse_annotation
from shapecheck.static.walk import walk


def text_faults(
    declarations: Declarations, module: ModuleFacts, node: ast.ClassDef | FunctionNode
) -> Iterator[ContractFault]:
    """What is wrong with the shape texts and marks of one definition."""
    reader = Reader(declarations.project, module, declarations.per_call, None)
    for annotation in _annotations(node):
        for part in _parts(reader, annotation):
            yield from _faults(declarations, reader, part, node.name)


def alias_faults(declarations: Declarations, module: ModuleFacts) -> Iterator[ContractFault]:
    """What is wrong with the marks of the annotations that a module or class gives names to."""
    reader = Reader(declarations.project, module, declarations.per_call, None)
    for space in (module.bindings, *(cls.defaults for cls in module.classes)):
        for name, value in space.items():
            if not isinstance(value, ast.expr):
                continue
            for part in _parts(reader, value):
                if isinstance(part, ast.Call):
                    yield from _faults(declarations, reader, part, name)


def _faults(
    declarations: Declarations, reader: Reader, part: ast.Constant | ast.Call, cell: str
) -> Iterator[ContractFault]:
    span, text = reader.module.span(part), part
    if isinstance(part, ast.Call):
        try:
            mark = mark_made(reader.tool(part), part)
        except ContractTextError as error:
            yield ContractFault(code="SHP101", message=_said(error), span=span, cell=cell)
            return
        text = ast.Constant(mark.axis) if isinstance(mark, IndexOf) else None
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        declarations.texts += 1
        if shape_faults(text.value, declarations.per_call):
            declarations.follow(reader.module)
        for error in shape_faults(text.value, declarations.per_call):
            code, message = str(error).partition(" ")[0], _said(error)
            near = "did you mean" in message
            if code == "SHP101" or declarations.complete or near:
                yield ContractFault(code=code, message=message, span=span, cell=cell)


def _said(error: ContractTextError) -> str:
    return str(error).partition(": ")[2]


def _annotations(node: ast.ClassDef | FunctionNode) -> Iterator[ast.expr]:
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                yield statement.annotation
        return
    for argument in arguments(node):
        if argument.annotation is not None:
            yield argument.annotation
    if node.returns is not None:
        yield node.returns


def arguments(node: FunctionNode) -> list[ast.arg]:
    """Every parameter in order, those with a star included."""
    spec = node.args
    stars = [one for one in (spec.vararg, spec.kwarg) if one is not None]
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *stars]


def _parts(reader: Reader, annotation: ast.expr) -> Iterator[ast.Constant | ast.Call]:
    """The shape texts of jaxtyping's kinds and the marks in an annotation, a quoted one opened."""
    for node in walk(annotation):
        if isinstance(node, ast.Subscript) and reader.is_array(node.value):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            text = items[1] if len(items) == 2 else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield text
        elif isinstance(node, ast.Call) and reader.is_mark(node):
            yield node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "[" in node.value:
            inner = parse_annotation(node.value)
            if inner is not None:
                for part in _parts(reader, inner):
                    yield ast.copy_location(part, node)
