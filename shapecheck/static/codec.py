"""Plain data as bytes and back: nothing but the classes listed is ever made of bytes.

Places are kept apart from everything else, so that they can move when lines do; syntax is left
out, it is needed for interpreting alone.
"""

from __future__ import annotations

import ast
import io
import pickle
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeGuard

from shapecheck.diagnostics.model import Note, Span
from shapecheck.dims.expr import Poly
from shapecheck.static import facts
from shapecheck.static.contracts.promise import Case, Promise
from shapecheck.static.guards import Guard, Test
from shapecheck.static.symbols import Ownership, Step, Symbol
from shapecheck.static.values import Alternative, Const, DType, Size, Tensor, Union, Unknown


def _is_made_in(thing: object, module: str) -> TypeGuard[type]:
    return isinstance(thing, type) and thing.__module__ == module


FACTS: tuple[type, ...] = (
    *(Note, Promise, Case, Guard, Test, Ownership, Step, Symbol, Poly),
    *(Alternative, Const, DType, Size, Tensor, Union, Unknown),
    *(one for one in vars(facts).values() if _is_made_in(one, facts.__name__)),
)
Move = Callable[[str, int], int]  # a path and a line to where it is now; KeyError: nowhere


class CodecError(Exception):
    """Bytes that are no plain data, or speak of a place that is gone."""


class _Writer(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        """What makes this object again; asked for what is no number, text or container."""
        if isinstance(obj, Span):
            return place, (obj.path, obj.line, obj.column)
        return (nothing, ()) if isinstance(obj, ast.AST) else NotImplemented


@lru_cache(maxsize=1 << 16)  # most places are in many facts
def place(path: str, line: int, column: int) -> Span:
    """A place as it is written; whoever reads it moves it."""
    return Span(path=path, line=line, column=column)


def nothing() -> None:
    """What is written for syntax."""


class _Reader(pickle.Unpickler):
    def __init__(self, stream: io.BufferedIOBase, classes: tuple[type, ...], move: Move) -> None:
        super().__init__(stream)
        self._move = move
        self._classes = _by_name(classes)

    def _moved(self, path: str, line: int, column: int) -> Span:
        return place(path, self._move(path, line), column)

    def find_class(self, module_name: str, global_name: str) -> Callable[..., object]:
        if module_name == __name__:
            if global_name != "place":
                return nothing
            return place if self._move is stay else self._moved
        known = self._classes.get((module_name, global_name))
        if known is None:
            raise CodecError(f"{module_name}.{global_name} is no plain data")
        return known


@lru_cache
def _by_name(classes: tuple[type, ...]) -> Mapping[tuple[str, str], type]:
    return {(one.__module__, one.__name__): one for one in classes}


def stay(_path: str, line: int) -> int:
    """The move of a text that did not change."""
    return line


def encode(data: object) -> bytes:
    """Plain data as bytes."""
    stream = io.BytesIO()
    write(data, stream)
    return stream.getvalue()


def write(data: object, stream: io.BufferedIOBase) -> None:
    """Write plain data behind what is in a stream."""
    _Writer(stream, pickle.HIGHEST_PROTOCOL).dump(data)


def decode(data: bytes, classes: tuple[type, ...], move: Move = stay) -> object:
    """The data of these bytes, its places moved; CodecError when it is not made of `classes`."""
    return read(io.BytesIO(data), classes, move)


def read(stream: io.BufferedIOBase, classes: tuple[type, ...], move: Move = stay) -> object:
    """The next data of a stream, as in `decode`."""
    try:
        return _Reader(stream, classes, move).load()
    except Exception as error:  # bytes that we did not write may break anything in the reader
        raise CodecError(str(error)) from error
