"""Which line of the traced code asked: its frames, without those of torch and of this tool."""

from __future__ import annotations

import dis
import inspect
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

from shapecheck.diagnostics import Span

_PACKAGE = Path(__file__).resolve().parent.parent
_STDLIB = tuple(
    {os.path.realpath(sysconfig.get_paths()[key]) + os.sep for key in ("stdlib", "platstdlib")}
)
# Third-party code below the traced code, which asks on behalf of the line that called it, and what
# runs this tool.
_BELOW = ("torch", "sympy", "jaxtyping", "beartype", "hypothesis", "_pytest", "pluggy", "click")
# The user's own code inside this distribution.
_OURS_TO_TRACE = (str(_PACKAGE / "demo") + os.sep,)
_COMPARING = ("COMPARE_OP", "POP_JUMP", "JUMP_IF", "UNARY_NOT", "CONTAINS_OP", "IS_OP", "TO_BOOL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A line of the traced code; `comparing` when it stands at its own comparison or jump."""

    path: str
    file: str
    line: int
    column: int
    function: str
    comparing: bool = False

    def span(self) -> Span:
        """The same place as a diagnostic shows it."""
        return Span(path=self.path, line=self.line, column=self.column)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


NOWHERE = Site(path="<unknown>", file="", line=1, column=1, function="<unknown>")


def current_site() -> Site:
    """The innermost line of traced code on this thread's stack, or NOWHERE."""
    for frame in user_frames():
        return _site_of(frame)
    return NOWHERE


def calling_site() -> Site | None:
    """The innermost line outside of installed packages, when the innermost line is inside one."""
    frames = user_frames()
    for frame in frames:
        if not _is_installed(frame.f_code.co_filename):
            return None
        break
    for frame in frames:
        if not _is_installed(frame.f_code.co_filename):
            return _site_of(frame)
    return None


def site_of_error(error: BaseException) -> Site:
    """The innermost line of traced code that the error passed, or NOWHERE."""
    traceback, found = error.__traceback__, NOWHERE
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_traced_file(code.co_filename):
            found = _site(code, traceback.tb_lasti, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def user_frames() -> Iterator[FrameType]:
    """The frames of traced code, innermost first."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        if is_traced_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


@lru_cache(maxsize=4096)
def is_traced_file(filename: str) -> bool:
    """Whether a line of this file may be blamed."""
    if filename.startswith("<"):
        return False
    path = os.path.realpath(filename)
    if path.startswith(str(_PACKAGE) + os.sep):
        return path.startswith(_OURS_TO_TRACE)
    for folder in ("site-packages", "dist-packages"):
        marker = f"{os.sep}{folder}{os.sep}"
        if marker in path:
            top = path.rpartition(marker)[2].split(os.sep, 1)[0]
            return top.removesuffix(".py") not in _BELOW
    return not path.startswith(_STDLIB)


@lru_cache(maxsize=4096)
def _is_installed(filename: str) -> bool:
    path = os.path.realpath(filename)
    return any(f"{os.sep}{folder}{os.sep}" in path for folder in ("site-packages", "dist-packages"))


@lru_cache(maxsize=4096)
def shown_path(filename: str) -> str:
    """The path as it is shown: below the current folder or site-packages when it is there."""
    path = os.path.realpath(filename)
    for folder in ("site-packages", "dist-packages"):
        marker = f"{os.sep}{folder}{os.sep}"
        if marker in path:
            return path.rpartition(marker)[2]
    here = os.path.realpath(os.getcwd()) + os.sep
    return path.removeprefix(here)


def _site_of(frame: FrameType) -> Site:
    return _site(frame.f_code, frame.f_lasti, frame.f_lineno)


def _site(code: CodeType, offset: int, line: int) -> Site:
    column, comparing = _instruction(code, offset)
    return Site(
        path=shown_path(code.co_filename),
        file=code.co_filename,
        line=line,
        column=column,
        function=code.co_qualname,
        comparing=comparing,
    )


@lru_cache(maxsize=4096)
def _instruction(code: CodeType, offset: int) -> tuple[int, bool]:
    # The opcode decides, because C++ composites show the same frames as a user's comparison.
    # While a call runs, the offset may stand in the call's inline cache, after the instruction.
    last: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.offset > offset:
            break
        last = instruction
    if last is None:
        return 1, False
    column = last.positions.col_offset if last.positions is not None else None
    return (column or 0) + 1, last.opname.startswith(_COMPARING)
