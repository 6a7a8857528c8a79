"""`enable`: turns contracts on in code that was imported at level off, or at another level."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import ModuleType, TracebackType
from typing import Any, cast

from shapecheck.config import Level, level_named, settings
from shapecheck.errors import ShapecheckError
from shapecheck.runtime.dispatch import dispatcher
from shapecheck.runtime.plan import Mode
from shapecheck.runtime.table import PlanTable
from shapecheck.runtime.tensors import class_name
from shapecheck.spec import contract_of

_IMPORTED = "enable(%s): %s was imported before and stays off"
_WRAPPED = "enable(%s): %s stays off below another decorator; put @contract above that one"

log = logging.getLogger("shapecheck")
Namespace = type | ModuleType
# Where, which name, and what it was: None where the class had only inherited it.
_Rebound = tuple[Namespace, str, object]


class Undo:
    """Puts every attribute back that `enable` rebound, when called or at the end of a `with`."""

    def __init__(self, rebound: list[_Rebound], still_off: list[str]) -> None:
        self._rebound = rebound
        self.still_off = tuple(still_off)

    def __call__(self) -> None:
        """Everything is as before `enable`; a second call changes nothing."""
        while self._rebound:
            space, name, before = self._rebound.pop()
            if before is None:
                delattr(space, name)
            else:
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
    """Enforce the contracts of a class, or of a module and its classes, from now on; of a package
    those of every module of it that is imported by now.

    `level` is that of SHAPECHECK, or strict where that is off; what is on at another level changes
    to it. Attributes are rebound: bound methods, names that other modules imported before and
    contracts below another decorator stay as they are, and those names are logged and listed in
    `still_off`. What a class inherits is rebound in the class itself. The result undoes it. Raises
    ShapecheckError when nothing has a contract.
    """
    if not isinstance(target, type | ModuleType):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapecheckError(
            f"enable() of {class_name(target)}: pass the class or the module itself"
        )
    now = settings()
    chosen = now.level if level is None else level_named(level, "enable: level")
    mode = Mode(level=Level.STRICT if chosen is Level.OFF else chosen, every=now.every)
    rebound: list[_Rebound] = []
    replaced: list[tuple[Namespace, object]] = []
    still_off: list[str] = []
    on_already = False
    for space, name, before in [one for part in _parts(target) for one in _contracted(part)]:
        made = _on(before, mode)
        if made is before:
            if _is_on(before):
                on_already = True
            else:
                still_off.append(f"{space.__name__}.{name}")
                log.warning(_WRAPPED, target.__name__, still_off[-1])
            continue
        rebound.append((space, name, vars(space).get(name)))
        setattr(space, name, made)
        replaced.append((space, before))
    # Only now: a package rebinds the names that its own modules imported from each other.
    for place in sorted({place for space, one in replaced for place in _elsewhere(one, space)}):
        still_off.append(place)
        log.warning(_IMPORTED, target.__name__, place)
    if not rebound and not on_already:
        raise ShapecheckError(
            f"enable({target.__name__}): nothing here has a contract to turn on; decorate with "
            "@contract, or set SHAPECHECK before the import"
        )
    return Undo(rebound, still_off)


def _parts(target: Namespace) -> list[Namespace]:
    """The target itself, and the modules of a package that are imported."""
    if isinstance(target, type) or not hasattr(target, "__path__"):
        return [target]
    inside = f"{target.__name__}."
    found = [one for name, one in sorted(sys.modules.items()) if name.startswith(inside)]
    return [target, *(one for one in found if isinstance(one, ModuleType))]  # pyright: ignore[reportUnnecessaryIsInstance]


def _contracted(target: Namespace) -> Iterator[tuple[Namespace, str, object]]:
    found = dict(vars(target))
    for base in target.__mro__[1:] if isinstance(target, type) else ():
        found = {**vars(base), **found}
    for name, value in found.items():
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
    if declared is None:
        return before
    # A wrapper has the attributes of what it wraps; a dispatcher wraps the function itself.
    table = getattr(before, "__shapecheck_table__", None)
    if isinstance(table, PlanTable) and getattr(before, "__wrapped__", None) is declared.function:
        return before if table.mode == mode else dispatcher(declared, mode)
    return dispatcher(declared, mode) if before is declared.function else before


def _is_on(found: object) -> bool:
    """Whether a dispatcher stands somewhere in it: wrappers copy the attributes of functions."""
    inner = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    return hasattr(inner, "__shapecheck_table__")


def _elsewhere(before: object, home: Namespace) -> list[str]:
    """Module attributes that still name the function as it was."""
    return [
        f"{module.__name__}.{name}"
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType) and module is not home  # pyright: ignore[reportUnnecessaryIsInstance]
        for name, value in list(vars(module).items())
        if value is before
    ]
