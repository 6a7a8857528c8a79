"""The top-level definitions of a source text, found by its lines and parsed when asked for.

Most files are loaded for one class or function. A definition starts at a line that begins with
`def`, `class`, `async def` or a decorator, outside every string, and ends where the next statement
starts in the first column. What remains (imports, constants, conditions) is parsed at once.
A text that this cannot cut is cut by nobody: its pieces do not parse, and it is read as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING_OR_COMMENT = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
_FIRST_OF_LINE = re.compile(r"\n[^\n]")
_STATEMENT = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
_DEFINITION = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_IMPORT = re.compile(
    r"^[ \t]+(from[ \t]+[.\w]+[ \t]+import[ \t]*\([^()]*\)|(?:from|import)[ \t][^\n;\\(]+)[ \t]*$",
    re.MULTILINE,
)
_ANY_IMPORT = re.compile(r"(?:^|[;:])[ \t]*(?:import|from)[ \t][^\n]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One definition: its name, the line before its first, and its place in the whole text."""

    name: str
    before: int
    whole: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """The definition alone."""
        return self.whole[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Blocks:
    """A cut text: the definitions, the text without them (line for line), and their imports."""

    definitions: tuple[Block, ...]
    rest: str
    imports: str


def cut(text: str) -> Blocks | None:
    """The definitions of a text and the rest of it; None where imports inside them hide."""
    if "\r" in text:
        return None
    visible = _STRING_OR_COMMENT.sub(_hidden, text)
    starts = [match.start() for match in _STATEMENT.finditer(visible)]
    starts.append(len(text))
    definitions: list[Block] = []
    rest: list[str] = []
    imports: list[str] = []
    line = done = position = 0
    while position < len(starts) - 1:
        start = starts[position]
        position += 1
        if visible[start] not in "@dca":
            continue
        while visible[starts[position - 1]] == "@" and position < len(starts) - 1:
            position += 1
        match = _DEFINITION.match(visible, starts[position - 1])
        if match is None:
            continue
        end = starts[position]
        before = text[done:start]
        line += before.count("\n")
        lines = text.count("\n", start, end)
        definitions.append(Block(match[1], line, text, start, end))
        found = _imports(visible[start:end])
        if found is None:
            return None
        imports += found
        rest += (before, "\n" * lines)
        line += lines
        done = end
    rest.append(text[done:])
    return Blocks(tuple(definitions), "".join(rest), "\n".join(imports))


def _hidden(match: re.Match[str]) -> str:
    """A comment or a text without anything that looks like a statement, of the same length."""
    found = match[0]
    if "\n" in found:
        return _FIRST_OF_LINE.sub("\n)", found)
    if found[0] == "#" or "import" in found or "from" in found:
        return " " * len(found)
    return found


def _imports(block: str) -> list[str] | None:
    """The import statements in a definition, or None where not all of them are seen."""
    if "import" not in block:
        return []
    expected = len(_ANY_IMPORT.findall(block))
    if not expected:
        return []
    found = [match[1].strip() for match in _IMPORT.finditer(block)]
    return found if len(found) == expected else None
