"""Python constructs that would turn a size into a number where the code only passes it on.

`len(t)` and `isinstance(n, int)` are shadowed in the globals of the traced modules; SymInt gets a
hash, and torch's norms take it as an integer. All of it is undone when the trace ends.
"""

from __future__ import annotations

import builtins
import numbers
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import torch
from torch.nn.modules import normalization

_MISSING = object()


@contextmanager
def constructs(packages: Iterable[str], hint: Callable[[torch.SymInt], int]) -> Generator[None]:
    """Shadow the constructs in every loaded module of `packages` (names of packages or modules)."""
    modules = list(_modules(tuple(packages)))
    saved = [
        (module, name, vars(module).get(name, _MISSING))
        for module in modules
        for name in ("len", "isinstance")
    ]

    def _hash(size: torch.SymInt) -> int:
        return hash(hint(size))

    hash_before, numbers_before = torch.SymInt.__hash__, vars(normalization)["numbers"]
    try:
        for module, name, before in saved:
            if before is _MISSING:
                setattr(module, name, SHADOWS[name])
        setattr(torch.SymInt, "__hash__", _hash)  # noqa: B010
        # nn.LayerNorm asks numbers.Integral, which a registration would change for good.
        integral = SimpleNamespace(Integral=(numbers.Integral, torch.SymInt))
        setattr(normalization, "numbers", integral)  # noqa: B010
        yield
    finally:
        setattr(normalization, "numbers", numbers_before)  # noqa: B010
        setattr(torch.SymInt, "__hash__", hash_before)  # noqa: B010
        for module, name, before in saved:
            if before is _MISSING:
                delattr(module, name)


def _modules(packages: tuple[str, ...]) -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if any(name == package or name.startswith(package + ".") for package in packages):
            yield module


def _len(value: Any) -> int:
    if isinstance(value, torch.Tensor) and value.dim():
        return value.shape[0]
    return builtins.len(value)


def _isinstance(value: object, kinds: Any) -> bool:
    if builtins.isinstance(value, torch.SymInt):
        return int in _flat(kinds) or builtins.isinstance(value, kinds)
    return builtins.isinstance(value, kinds)


def _flat(kinds: Any) -> tuple[object, ...]:
    if builtins.isinstance(kinds, tuple):
        nested = cast("tuple[object, ...]", kinds)
        return tuple(kind for part in nested for kind in _flat(part))
    return getattr(kinds, "__args__", (kinds,))


SHADOWS: dict[str, Callable[..., object]] = {"len": _len, "isinstance": _isinstance}
