"""Errors of Python itself that a shape explains: an axis is read or unpacked that a tensor lacks.

`x.shape[1]` of a vector and `rows, width = x.shape` of a cube never reach torch, so no operation
refuses them; the line and the tensor are still in the traceback.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import NamedTuple

import torch

from shapecheck.symbolic.attribution import is_traced_file

_MISSING = object()


class RankRead(NamedTuple):
    """A tensor, the source that names it, and how many axes the code took it to have."""

    tensor: torch.Tensor
    source: str
    wanted: str


def rank_read(error: BaseException) -> RankRead | None:
    """The read of a shape that ended in this error, in the innermost line of traced code."""
    if not isinstance(error, (IndexError, ValueError)):
        return None
    last = _innermost(error.__traceback__)
    if last is None:
        return None
    frame = last.tb_frame
    statement = _statement(frame.f_code.co_filename, last.tb_lineno)
    for read, wanted in _reads(statement) if statement is not None else ():
        tensor = _value(read.value, frame)
        if isinstance(tensor, torch.Tensor) and _fails(tensor.dim(), wanted):
            return RankRead(tensor, ast.unparse(read.value), _in_words(wanted))
    return None


def _innermost(traceback: TracebackType | None) -> TracebackType | None:
    """Where the error was raised, unless that is code that is not traced."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not is_traced_file(traceback.tb_frame.f_code.co_filename):
        return None
    return traceback


def _statement(filename: str, line: int) -> ast.stmt | None:
    """The innermost statement on this line."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return None
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            found = node
    return found


def _reads(statement: ast.stmt) -> Iterator[tuple[ast.Attribute, int]]:
    """Every `x.shape` whose rank the statement relies on: an index, or minus how many names."""
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(value=ast.Attribute(attr="shape") as read, slice=index):
                number = _number(index)
                if number is not None:
                    yield read, number if number >= 0 else -number - 1
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Attribute() as read):
                if read.attr == "shape" and not any(isinstance(x, ast.Starred) for x in names):
                    yield read, -len(names)
            case _:
                continue


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def _fails(rank: int, wanted: int) -> bool:
    return rank != -wanted if wanted < 0 else wanted >= rank


def _in_words(wanted: int) -> str:
    return f"{-wanted} axes are unpacked" if wanted < 0 else f"axis {wanted} is read"


def _value(node: ast.expr, frame: FrameType) -> object:
    """The value of a name or of an attribute that is stored; nothing is called for it."""
    match node:
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name, _MISSING))
        case ast.Attribute(value=inner, attr=name):
            holder = _value(inner, frame)
            if isinstance(holder, torch.nn.Module):
                stored: dict[str, object] = dict(holder.named_parameters(recurse=False))
                stored |= dict(holder.named_buffers(recurse=False))
                stored |= dict(holder.named_children())
                return stored.get(name, holder.__dict__.get(name, _MISSING))
            slots = getattr(type(holder), "__slots__", ())
            if name in slots:
                return getattr(holder, name, _MISSING)
            return getattr(holder, "__dict__", {}).get(name, _MISSING)
        case _:
            return _MISSING
