"""Stand-ins for functions while a trace runs, in every place that holds them.

At level off `@contract` gives the function back as it is, so its code is what can be replaced: the
module, the class, a bound method and whoever imported it all see the stand-in, and nobody pays
outside of a trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import count
from types import CodeType, FunctionType
from typing import cast

Function = Callable[..., object]
_numbers = count()


class Standins:
    """Functions whose code is replaced until `restore`."""

    def __init__(self) -> None:
        self._before: list[tuple[FunctionType, CodeType, str]] = []

    def put(self, function: Function, make: Callable[[Function], Function]) -> None:
        """Every call of `function` is a call of `make(original)`; a coroutine stays one."""
        held = cast(FunctionType, function)
        before, name = held.__code__, f"_sc_standin_{next(_numbers)}"
        original = FunctionType(
            before, held.__globals__, held.__name__, held.__defaults__, held.__closure__
        )
        original.__kwdefaults__ = held.__kwdefaults__
        held.__globals__[name] = make(original)
        held.__code__ = _code(before, name, awaits=inspect.iscoroutinefunction(function))
        self._before.append((held, before, name))

    def restore(self) -> None:
        """Every function is as it was."""
        while self._before:
            function, code, name = self._before.pop()
            function.__code__ = code
            del function.__globals__[name]


def _code(before: CodeType, name: str, *, awaits: bool) -> CodeType:
    # A function keeps its closure, so its code has as many free names as before.
    free = ", ".join(f"_sc_free_{index}" for index in range(len(before.co_freevars)))
    lines = [
        f"def outer({free}):",
        f"    {'async ' if awaits else ''}def standin(*args, **kwargs):",
        f"        return {'await ' if awaits else ''}{name}(*args, **kwargs)",
        f"        {free}",
        "    return standin",
    ]
    namespace: dict[str, Callable[..., FunctionType]] = {}
    exec(compile("\n".join(lines), f"<shapecheck {before.co_name}>", "exec"), namespace)
    made = namespace["outer"](*before.co_freevars)
    return made.__code__.replace(co_name=before.co_name, co_qualname=before.co_qualname)
