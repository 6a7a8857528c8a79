"""The text of a generated function while it is written: lines, blocks, fresh names."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

INDENT = "    "
# Generated code calls these by names of its own: a parameter may be called `id` or `len`.
_BUILTINS = (AttributeError, divmod, enumerate, getattr, id, isinstance, len)


@dataclass(slots=True, eq=False)
class Text:
    """Lines at a depth, and the globals they use.

    `conditional` counts the blocks around the present line that may not run, or run repeatedly.
    """

    namespace: dict[str, object]
    lines: list[str] = field(default_factory=list[str])
    depth: int = 1
    conditional: int = 0
    _fresh: int = 0

    def line(self, text: str) -> None:
        """Add one line at the present depth."""
        self.lines.append(INDENT * self.depth + text)

    @contextmanager
    def block(self, head: str, *, conditional: bool = True) -> Generator[None, None, None]:
        """Indent what follows below `head`."""
        self.line(head)
        self.depth += 1
        self.conditional += conditional
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1
        self.conditional -= conditional

    def fresh(self, stem: str) -> str:
        """A variable no other line uses; the prefix keeps clear of the user's parameters."""
        self._fresh += 1
        return f"_sc_{stem}{self._fresh}"

    def constant(self, stem: str, value: object) -> str:
        """A global of the function that holds `value`."""
        name = self.fresh(stem)
        self.namespace[name] = value
        return name


def build(source: str, name: str, namespace: dict[str, object]) -> Callable[..., object]:
    """The function `name` of `source`; tracebacks show its lines as long as it lives."""
    filename = f"<shapecheck {name} {id(namespace):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace |= {f"_sc_{each.__name__}": each for each in _BUILTINS}
    # pytest leaves frames with this global out, and with them the repr of the tensors they hold.
    namespace["__tracebackhide__"] = True
    exec(compile(source, filename, "exec"), namespace)
    made = namespace[name]
    assert callable(made)
    weakref.finalize(made, linecache.cache.pop, filename, None)
    return made
