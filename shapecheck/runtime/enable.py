"""`enable`: turns contracts on in code that was imported at level off."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import ModuleType, TracebackType
from typing import Any, cast

from shapecheck.config import Level, settings
from shapecheck.errors import ShapecheckError
from shapecheck.runtime.dispatch import dispatcher
from shapecheck.runtime.plan import Mode
from shapecheck.spec import contract_of

log = logging.getLogger("shapecheck")
Namespace = type | ModuleType


class Undo:
    """Puts every attribute back that `enable` rebound, when called or at the end of a `with`."""

    def __init__(self, rebound: list[tuple[Namespace, str, object]], still_off: list[str]) -> None:
        self._rebound = rebound
        self.still_off = tuple(still_off)

    def __call__(self) -> None:
        """Everything is as before `enable`; a second call changes nothing."""
        while self._rebound:
            space, name, before = self._rebound.pop()
            setattr(space, name, before)

    def __enter__(self) -> Undo:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self()


def enable(target: Namespace, *, level: Level | str | None = None) -> Undo:
    """Enforce the contracts of a class, or of a module and its classes, from now on.

    `level` is that of SHAPECHECK, or strict where that is off. Attributes are rebound: bound
    methods and names that other modules imported before stay off, and those names are logged and
    listed in `still_off`. The result undoes it. Raises ShapecheckError when nothing has a contract.
    """
    now = settings()
    chosen = Level(level) if level is not None else now.level
    mode = Mode(level=Level.STRICT if chosen is Level.OFF else chosen, every=now.every)
    rebound: list[tuple[Namespace, str, object]] = []
    still_off: list[str] = []
    for space, name, before in list(_contracted(target)):
        made = _on(before, mode)
        if made is before:
            continue
        setattr(space, name, made)
        rebound.append((space, name, before))
        still_off += _elsewhere(before, space)
    if not rebound:
        raise ShapecheckError(
            f"enable({target.__name__}): nothing here has a contract that is off; decorate with "
            "@contract, or set SHAPECHECK before the import"
        )
    for place in still_off:
        log.warning("enable(%s): %s was imported before and stays off", target.__name__, place)
    return Undo(rebound, still_off)


def _contracted(target: Namespace) -> Iterator[tuple[Namespace, str, object]]:
    for name, value in list(vars(target).items()):
        if contract_of(value) is not None:
            yield target, name, value
        elif isinstance(value, type) and value.__module__ == target.__name__:
            yield from _contracted(value)


def _on(before: object, mode: Mode) -> object:
    if isinstance(before, property):
        parts = [before.fget, before.fset, before.fdel]
        made = [part if part is None else _on(part, mode) for part in parts]
        if made == parts:
            return before
        return property(*cast("list[Any]", made), doc=before.__doc__)
    if isinstance(before, classmethod | staticmethod):
        static = isinstance(before, staticmethod)
        inner: object = cast(Any, before).__func__
        made = cast(Any, _on(inner, mode))
        if made is inner:
            return cast(object, before)
        return staticmethod(made) if static else classmethod(made)
    declared = contract_of(before)
    if declared is None or before is not declared.function:
        return before
    return dispatcher(declared, mode)


def _elsewhere(before: object, home: Namespace) -> list[str]:
    """Module attributes that still name the function as it was."""
    return [
        f"{module.__name__}.{name}"
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType) and module is not home  # pyright: ignore[reportUnnecessaryIsInstance]
        for name, value in list(vars(module).items())
        if value is before
    ]
