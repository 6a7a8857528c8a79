"""Where the names of an annotation are looked up: module, local scopes, enclosing class."""

from __future__ import annotations

import builtins
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType, SimpleNamespace


@dataclass(slots=True)
class Scope:
    """Evaluates annotations of one function or class, also before its forward references exist.

    `frame` is the local scope that may still define names; `release` lets it go, and with it
    whatever its locals keep alive.
    """

    module: str
    qualname: str
    extra: Mapping[str, object]
    frame: FrameType | None = None

    @staticmethod
    def of_function(function: Callable[..., object], depth: int) -> Scope:
        """The scope of `function`, defined `depth` frames above the caller."""
        cells: dict[str, object] = {}
        code = getattr(function, "__code__", None)
        closure = getattr(function, "__closure__", None) or ()
        for name, cell in zip(getattr(code, "co_freevars", ()), closure, strict=False):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # not assigned yet: the frame may know it later
                continue
        frame = sys._getframe(depth + 1)  # pyright: ignore[reportPrivateUsage]
        name = function.__qualname__
        return Scope(function.__module__, name, cells, _local(name, frame))

    @staticmethod
    def of_class(owner: type, depth: int) -> Scope:
        """The scope of class `owner`, defined `depth` frames above the caller."""
        frame = sys._getframe(depth + 1)  # pyright: ignore[reportPrivateUsage]
        name = owner.__qualname__
        return Scope(owner.__module__, name, {owner.__name__: owner}, _local(name, frame))

    def evaluate(self, annotation: object, owner: type | None = None) -> object:
        """The hint an annotation stands for; raises NameError while a name is not defined."""
        module = self._globals()
        namespace = {**self._locals(), **self.extra}
        if owner is not None:
            namespace.setdefault(owner.__name__, owner)
            for name, value in vars(owner).items():
                # A nested class; an attribute hides no import, and a method `list` no builtin.
                if name not in module and (isinstance(value, type) or not hasattr(builtins, name)):
                    namespace.setdefault(name, value)
        holder = SimpleNamespace(__annotations__={"hint": annotation})
        return typing.get_type_hints(
            holder, globalns=dict(module), localns=namespace, include_extras=True
        )["hint"]

    def enclosing_class(self) -> type | None:
        """The class whose body defines this function, or None (yet, or at all)."""
        parts = self.qualname.split(".")[:-1]
        if "<locals>" in parts:
            after = len(parts) - parts[::-1].index("<locals>")
            names, space = parts[after:], self._locals()
        else:
            names, space = parts, self._globals()
        found: object = None
        for name in names:
            found = space.get(name)
            if not isinstance(found, type):
                return None
            space = vars(found)
        return found if isinstance(found, type) else None

    def release(self) -> None:
        """Let the frame go: everything was resolved."""
        self.frame = None

    def _globals(self) -> Mapping[str, object]:
        module = sys.modules.get(self.module)
        return vars(module) if isinstance(module, types.ModuleType) else {}

    def _locals(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for frame in reversed(list(self._frames())):
            found.update(frame.f_locals)
        return found

    def _frames(self) -> Iterator[FrameType]:
        """Class bodies and then the one function around them: what is lexically certain."""
        frame = self.frame
        while frame is not None and frame.f_code.co_name != "<module>":
            yield frame
            if "__qualname__" not in frame.f_locals:  # not a class body
                return
            frame = frame.f_back


def _local(qualname: str, frame: FrameType) -> FrameType | None:
    return frame if "<locals>" in qualname else None
