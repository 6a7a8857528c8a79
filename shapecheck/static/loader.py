"""Reading and parsing one file: a tree, or the reason why there is none; never a traceback."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.model import Diagnostic, Note, Severity, Span
from shapecheck.static.walk import walk

PLACED = (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.alias, ast.excepthandler, ast.pattern)
MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The text of one file; `path` is what reports show."""

    path: str
    text: str

    @property
    def lines(self) -> int:
        """How many lines the text has."""
        text = self.text
        ends = text.count("\n") + text.count("\r") - text.count("\r\n")
        return ends + (text[-1:] not in ("", "\n", "\r"))


def split_lines(text: str) -> list[str]:
    """The lines as Python counts them: a form feed or a Unicode separator ends none."""
    lines = io.StringIO(text, newline=None).read().split("\n")
    return lines if lines[-1] else lines[:-1]


class UnreadableFileError(Exception):
    """A file that cannot be analysed; carries the SHP903 diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def unreadable(path: str, reason: str, advice: str, line: int = 1) -> UnreadableFileError:
    """The SHP903 error for one file."""
    return UnreadableFileError(
        Diagnostic(
            code="SHP903",
            name=NAMES["SHP903"],
            message=f"not analysed: {reason}",
            severity=Severity.WARNING,
            primary=Span(path=path, line=max(line, 1)),
            notes=(Note(label="settle it", message=advice),),
        )
    )


def read_source(file: Path, shown: str) -> Source:
    """The decoded text of a file; UnreadableFileError says why there is none."""
    try:
        if not file.is_file():
            raise unreadable(shown, "it is not a regular file", "exclude the path")
        with file.open("rb") as stream:
            return decode_source(stream.read(MAX_BYTES + 1), shown)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise unreadable(shown, reason, "check the path and its permissions") from None


def decode_source(data: bytes, shown: str) -> Source:
    """The text of source bytes in the encoding that they declare."""
    if len(data) > MAX_BYTES:
        raise unreadable(
            shown,
            f"it has more bytes than the limit of {MAX_BYTES:,}",
            "exclude the path: generated tables hold no crossings",
        )
    if b"\0" in data:
        raise unreadable(shown, "it contains null bytes", "exclude the path or repair the file")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise unreadable(
            shown, f"its encoding cannot be read ({_first_line(error)})", "save it as UTF-8"
        ) from None
    return Source(path=shown, text=text.lstrip("\ufeff"))


def parse_source(source: Source) -> ast.Module:
    """The syntax tree, columns in characters; UnreadableFileError for what the parser refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text, filename=source.path)
    except SyntaxError as error:
        raise unreadable(
            source.path,
            f"syntax error: {error.msg}",
            "repair the file, or lint with a Python that knows this syntax",
            error.lineno or 1,
        ) from None
    except (RecursionError, MemoryError):
        raise unreadable(
            source.path, "it is nested too deeply to parse", "exclude the path"
        ) from None
    except ValueError as error:
        raise unreadable(source.path, _first_line(error), "repair the file") from None
    if not source.text.isascii():
        _count_characters(tree, source.text)
    return tree


def _count_characters(tree: ast.Module, text: str) -> None:
    """Make the columns, which Python gives in bytes of UTF-8, what an editor shows."""
    lines = split_lines(text)
    wide = {number: one.encode() for number, one in enumerate(lines, 1) if not one.isascii()}
    numbers = sorted(wide)

    def may_change(node: ast.AST) -> bool:
        if not isinstance(node, PLACED):
            return True
        at = bisect_left(numbers, _first_line_of(node))
        return at < len(numbers) and numbers[at] <= (node.end_lineno or node.lineno)

    for node in walk(tree, may_change):
        if isinstance(node, PLACED) and node.lineno in wide:
            before = wide[node.lineno][: node.col_offset]
            node.col_offset = len(before.decode(errors="ignore"))


def _first_line_of(node: ast.AST) -> int:
    """The first line of a node, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min(one.lineno for one in (*decorators, cast("ast.stmt", node)))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
