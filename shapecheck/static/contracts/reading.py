"""Annotations as text: jaxtyping shapes and the marks around them, read from syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shapecheck.diagnostics.model import Span
from shapecheck.dims.expr import Poly
from shapecheck.dims.parse import parse_shape
from shapecheck.errors import ContractTextError
from shapecheck.static.contracts.mark_calls import mark_made
from shapecheck.static.contracts.promise import Case, Promise, size_named
from shapecheck.static.project import annotation_head, parse_annotation
from shapecheck.static.symbols import SizePoly
from shapecheck.static.wording import wording

OWNERS = ("target", "draft")
_EXACT = {
    "Bool": "bool",
    "BFloat16": "bfloat16",
    **{f"Float{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"Int{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
_ARRAYS = {*_EXACT, "Float", "Int", "UInt", "Integer", "Num", "Shaped", "Real", "Inexact"}
_MARKS = ("owner", "dim", "phase", "dtype", "ids", "indexes")
_PADDED = ("ids", "indexes")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an annotation stands, who says it, and whether an unknown word is an error."""

    path: str
    source: str
    strict: bool = False
    phases: tuple[str, ...] = ()

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """The place of a node."""
        return Span(path=self.path, line=node.lineno, column=node.col_offset + 1)


class AnnotationError(Exception):
    """A word in an annotation that means nothing, and where it stands."""

    def __init__(self, node: ast.expr, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.message = message


def read_promise(node: ast.expr | None, place: Place) -> Promise | None:
    """What an annotation promises about sizes and owners, or None when it says neither.

    Raises AnnotationError in a strict place; elsewhere an unknown word says nothing.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        inner = parse_annotation(node.value)
        if inner is None:
            return None
        for child in ast.walk(inner):
            ast.copy_location(child, node)
        node = inner
    if node is None:
        return None
    owner, kind = "", None
    cases: list[Case] = []
    for part in _alternatives(node):
        marked = _Marks()
        inner = _unwrap(part, marked, place)
        owner = owner or marked.owner
        case = _case(inner, marked, place)
        if case is not None:
            cases.append(case)
        elif kind is None and not _is_none(inner):
            kind = inner
    if not cases and not owner:
        return None
    text = wording(node)
    return Promise(place.span(node), place.source, text, owner, kind, tuple(cases))


@dataclass(slots=True)
class _Marks:
    owner: str = ""
    size: SizePoly | None = None
    has_size: bool = False
    phase: str = ""
    dtype: str = ""


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    elif isinstance(node, ast.Subscript) and annotation_head(node) in ("Optional", "Union"):
        inner = node.slice
        for one in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
            yield from _alternatives(one)
    else:
        yield node


def _unwrap(node: ast.expr, marks: _Marks, place: Place) -> ast.expr:
    while isinstance(node, ast.Subscript) and annotation_head(node) == "Annotated":
        if not isinstance(node.slice, ast.Tuple) or not node.slice.elts:
            break
        node, *given = node.slice.elts
        for mark in given:
            _read_mark(mark, marks, place)
    return node


def _read_mark(node: ast.expr, marks: _Marks, place: Place) -> None:
    if isinstance(node, ast.Constant):
        return
    word = annotation_head(node.func) if isinstance(node, ast.Call) else ""
    text = _text_argument(node)
    if word not in _MARKS or text is None:
        if place.strict:
            raise AnnotationError(
                node,
                f"{wording(node)} is no mark; write one of {', '.join(_MARKS)} with a text",
            )
        return
    if word in ("owner", "dtype", "ids") and text not in OWNERS:
        if place.strict:
            raise AnnotationError(node, f"{word}({text!r}): write {word}('target') or 'draft'")
        return
    if word in _PADDED and place.strict and isinstance(node, ast.Call):
        try:
            mark_made(word, node)
        except ContractTextError as error:
            raise AnnotationError(node, str(error).partition(": ")[2]) from None
    if word == "owner":
        marks.owner = text
    elif word == "dtype":
        marks.dtype = text
    elif word == "phase":
        if place.strict and text not in place.phases:
            raise AnnotationError(node, f"phase({text!r}): list it under phases in pack.toml")
        marks.phase = text
    elif word in ("dim", "indexes"):
        axes = _axes(text, node, place)
        if place.strict and len(axes) != 1:
            what = "a number" if word == "dim" else "what the values index"
            raise AnnotationError(node, f"{word}({text!r}): {what} is one axis")
        if word == "indexes":
            return  # positions are judged where values move, under trace and at run time
        marks.size, marks.has_size = axes[0] if axes else None, True


def _text_argument(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call) and len(node.args) == 1 and not _more_keywords(node):
        given = node.args[0]
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return given.value
    return None


def _more_keywords(node: ast.Call) -> bool:
    """Whether the mark says more than a text and, for values, the one that stands for none."""
    padded = annotation_head(node.func) in _PADDED
    return any(one.arg != "pad" or not padded for one in node.keywords)


def _case(node: ast.expr, marks: _Marks, place: Place) -> Case | None:
    if marks.has_size:
        return Case(size=marks.size, phase=marks.phase)
    head = annotation_head(node)
    if not (isinstance(node, ast.Subscript) and head in _ARRAYS):
        return None
    inner = node.slice
    if not (isinstance(inner, ast.Tuple) and len(inner.elts) == 2):
        return None
    shape = inner.elts[1]
    if not (isinstance(shape, ast.Constant) and isinstance(shape.value, str)):
        return None
    axes = _axes(shape.value, shape, place)
    made = Case(axes=axes, dtype=_EXACT.get(head, ""), phase=marks.phase)
    return replace(made, dtype_owner=marks.dtype) if marks.dtype else made


def _axes(text: str, node: ast.expr, place: Place) -> tuple[SizePoly | None, ...]:
    axes: list[SizePoly | None] = []
    for token in text.split():
        try:
            (axis,) = parse_shape(token).axes
        except ContractTextError as error:
            if place.strict:
                raise AnnotationError(node, str(error)) from None
            axes.append(None)
            continue
        axes.append(_sized(axis))
    return tuple(axes)


def _sized(axis: Poly[str]) -> SizePoly | None:
    result: SizePoly = Poly.constant(0)
    for names, coefficient in axis.terms:
        term: SizePoly = Poly.constant(coefficient)
        for name in names:
            size = size_named(name)
            if size is None:
                return None
            term = term * size
        result = result + term
    return result


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
