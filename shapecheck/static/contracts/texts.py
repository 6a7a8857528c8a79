"""Shape texts that do not parse, and axis names that nobody declared."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapecheck.dims.parse import shape_faults
from shapecheck.static.contracts.annotations import Reader
from shapecheck.static.contracts.declared import Declarations
from shapecheck.static.facts import ContractFault
from shapecheck.static.index import FunctionNode, ModuleFacts
from shapecheck.static.project import parse_annotation
from shapecheck.static.walk import walk


def text_faults(
    declarations: Declarations, module: ModuleFacts, node: ast.ClassDef | FunctionNode
) -> Iterator[ContractFault]:
    """What is wrong with the shape texts of one definition."""
    reader = Reader(declarations.project, module, declarations.per_call, None)
    for annotation in _annotations(node):
        for text in _strings(reader, annotation):
            assert isinstance(text.value, str)
            declarations.texts += 1
            if shape_faults(text.value, declarations.per_call):
                declarations.follow(module)
            for error in shape_faults(text.value, declarations.per_call):
                code, _, rest = str(error).partition(" ")
                message = rest.partition(": ")[2]
                near = "did you mean" in message
                if code == "SHP102" and not (declarations.complete or near):
                    continue
                yield ContractFault(
                    code=code, message=message, span=module.span(text), cell=node.name
                )


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


def _strings(reader: Reader, annotation: ast.expr) -> Iterator[ast.Constant]:
    """The shape texts of jaxtyping's kinds in an annotation, a quoted one opened."""
    for node in walk(annotation):
        if isinstance(node, ast.Subscript) and reader.is_array(node.value):
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            text = items[1] if len(items) == 2 else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield text
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "[" in node.value:
            inner = parse_annotation(node.value)
            if inner is not None:
                for text in _strings(reader, inner):
                    yield ast.copy_location(text, node)
