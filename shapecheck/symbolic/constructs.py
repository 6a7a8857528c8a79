"""Python constructs that would turn a size into a number where the code only passes it on.

`len(t)` and `isinstance(n, int)` are shadowed in the globals of the traced modules; SymInt gets a
hash, and torch's norms take it as an integer. All of it is undone when the trace ends.
"""

from __future__ import annotations

import builtins
import numbers
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import torch
from torch.nn.modules import normalization


@contextmanager
def constructs(packages: Iterable[str], hint: Callable[[torch.SymInt], int]) -> Generator[None]:
    """Shadow the constructs in every module of `packages` (names of packages or modules).

    Modules that are imported in the block are shadowed before they run.
    """
    newcomers = _Newcomers(tuple(packages))

    def _hash(size: torch.SymInt) -> int:
        return hash(hint(size))

    hash_before, numbers_before = torch.SymInt.__hash__, vars(normalization)["numbers"]
    try:
        for name, module in list(sys.modules.items()):
            if newcomers.concern(name):
                newcomers.shadow(module)
        sys.meta_path.insert(0, newcomers)
        setattr(torch.SymInt, "__hash__", _hash)  # noqa: B010
        # nn.LayerNorm asks numbers.Integral, which a registration would change for good.
        integral = SimpleNamespace(Integral=(numbers.Integral, torch.SymInt))
        setattr(normalization, "numbers", integral)  # noqa: B010
        yield
    finally:
        setattr(normalization, "numbers", numbers_before)  # noqa: B010
        setattr(torch.SymInt, "__hash__", hash_before)  # noqa: B010
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not newcomers]
        newcomers.undo()


class _Newcomers(MetaPathFinder):
    """Finds what the other finders find, and shadows it before its code runs."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages
        self._shadowed: list[ModuleType] = []

    def concern(self, name: str) -> bool:
        return any(name == one or name.startswith(one + ".") for one in self._packages)

    def shadow(self, module: ModuleType) -> None:
        self._shadowed.append(module)
        for name, shadow in SHADOWS.items():
            vars(module).setdefault(name, shadow)

    def undo(self) -> None:
        for module in self._shadowed:
            for name, shadow in SHADOWS.items():
                if vars(module).get(name) is shadow:
                    delattr(module, name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not self.concern(fullname):
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((one for one in found if one is not None), None)
        loader = None if spec is None else spec.loader
        # The loaders of built-in modules are classes, shared by all of them.
        if loader is not None and hasattr(loader, "exec_module") and not isinstance(loader, type):
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                delattr(loader, "exec_module")  # the class's own again, for whoever reloads
                self.shadow(module)
                execute(module)

            setattr(loader, "exec_module", exec_module)  # noqa: B010
        return spec


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
