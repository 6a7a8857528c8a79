"""`enable`: turns contracts on in code that was imported at level off, or at another level."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any, cast

from shapecheck.config import Level, level_named, settings
from shapecheck.errors import ShapecheckError
from shapecheck.runtime.dispatch import dispatcher
from shapecheck.runtime.plan import Mode
from shapecheck.runtime.table import PlanTable
from shapecheck.runtime.tensors import class_name
from shapecheck.spec import FunctionContract, contract_of

_IMPORTED = "enable(%s): %s was imported before and stays off"
# Asked of its class: a lazy module imports, or raises, when it is asked for an attribute.
_GLOBALS = vars(ModuleType)["__dict__"]
_WRAPPED = "enable(%s): %s stays off below another decorator; put @contract above that one"

log = logging.getLogger("shapecheck")
Namespace = type | ModuleType
# Where, which name, and what it was: None where the class had only inherited it.
_Rebound = tuple[Namespace, str, object]


@dataclass(slots=True, eq=False)
class _Ready:
    """One enforcing function for all names of a function: pickle looks for it by its own."""

    mode: Mode
    made: dict[FunctionContract, object] = field(default_factory=dict["FunctionContract", object])

    def of(self, declared: FunctionContract, there: object = None) -> object:
        """The one that was made, or that is there already."""
        if declared not in self.made:
            self.made[declared] = there or dispatcher(declared, self.mode)
        return self.made[declared]


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
    to it. Attributes are rebound: bound methods, names that other modules imported before, lists
    and dicts of functions and contracts below another decorator stay as they are, and those names
    are logged and listed in `still_off`. What a class inherits is rebound in the class itself. The
    result undoes it. Raises ShapecheckError when nothing has a contract.
    """
    if not isinstance(target, ModuleType | type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapecheckError(
            f"enable() of {class_name(target)}: pass the class or the module itself"
        )
    now = settings()
    chosen = now.level if level is None else level_named(level, "enable: level")
    mode = Mode(level=Level.STRICT if chosen is Level.OFF else chosen, every=now.every)
    rebound: list[_Rebound] = []
    replaced: list[object] = []
    still_off: list[str] = []
    on_already = False
    ready = _Ready(mode)
    found = [one for part in _parts(target) for one in _contracted(part)]
    # What is on comes first: other names of it become the same.
    for space, name, before in sorted(found, key=lambda one: not _is_on(one[2])):
        made = _on(before, ready)
        if made is before:
            if _is_on(before):
                on_already = True
            else:
                still_off.append(f"{_name(space)}.{name}")
                log.warning(_WRAPPED, _name(target), still_off[-1])
            continue
        rebound.append((space, name, _held(space).get(name)))
        setattr(space, name, made)
        replaced.append(before)
    # Only now: a package rebinds the names that its own modules imported from each other.
    for place in _elsewhere(replaced):
        still_off.append(place)
        log.warning(_IMPORTED, _name(target), place)
    if not rebound and not on_already:
        raise ShapecheckError(
            f"enable({_name(target)}): nothing here has a contract to turn on; decorate with "
            "@contract, or set SHAPECHECK before the import"
        )
    return Undo(rebound, still_off)


def _held(space: Namespace) -> dict[str, object]:
    """The attributes of a class or a module itself."""
    return _GLOBALS.__get__(space) if isinstance(space, ModuleType) else dict(vars(space))


def _name(space: Namespace) -> str:
    return str(_held(space).get("__name__")) if isinstance(space, ModuleType) else space.__name__


def _modules() -> Iterator[ModuleType]:
    for one in [*sys.modules.values()]:
        if issubclass(type(one), ModuleType):  # pyright: ignore[reportUnnecessaryIsInstance]
            yield one


def _parts(target: Namespace) -> list[Namespace]:
    """The target itself, and the modules of a package that are imported."""
    if not isinstance(target, ModuleType) or "__path__" not in _held(target):
        return [target]
    inside = f"{_name(target)}."
    # By their own names: a package may hand out a module of another as its own.
    found = {_name(one): one for one in _modules()}
    return [target, *(one for name, one in sorted(found.items()) if name.startswith(inside))]


def _contracted(target: Namespace) -> Iterator[tuple[Namespace, str, object]]:
    """What has a contract in a class or module and in the classes that it defines."""
    found = _held(target)
    for base in () if isinstance(target, ModuleType) else target.__mro__[1:]:
        found = {**vars(base), **found}
    for name, value in [*found.items()]:
        if _contract(value) is not None:
            yield target, name, value
        elif issubclass(type(value), type) and _defines(target, cast(type, value)):
            yield from _contracted(cast(type, value))


def _defines(space: Namespace, cls: type) -> bool:
    if isinstance(space, ModuleType):
        return cls.__module__ == _name(space)
    inside = f"{space.__qualname__}."
    return cls.__module__ == space.__module__ and cls.__qualname__.startswith(inside)


def _contract(value: object) -> FunctionContract | None:
    try:
        return contract_of(value)
    except Exception:  # another's object, such as a proxy outside of its context: no function
        return None


def _on(before: object, ready: _Ready) -> object:
    if isinstance(before, property):
        parts = [before.fget, before.fset, before.fdel]
        made = [part if part is None else _on(part, ready) for part in parts]
        if made == parts:
            return before
        return property(*cast("list[Any]", made), doc=before.__doc__)
    if isinstance(before, classmethod | staticmethod):
        static = isinstance(before, staticmethod)
        inner: object = cast(Any, before).__func__
        made = cast(Any, _on(inner, ready))
        if made is inner:
            return cast(object, before)
        return staticmethod(made) if static else classmethod(made)
    declared = contract_of(before)
    if declared is None:
        return before
    # A wrapper has the attributes of what it wraps; a dispatcher wraps the function itself.
    table = getattr(before, "__shapecheck_table__", None)
    if isinstance(table, PlanTable) and getattr(before, "__wrapped__", None) is declared.function:
        return ready.of(declared, before if table.mode == ready.mode else None)
    return ready.of(declared) if before is declared.function else before


def _is_on(found: object) -> bool:
    """Whether a dispatcher stands somewhere in it: wrappers copy the attributes of functions."""
    inner = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    return hasattr(inner, "__shapecheck_table__")


def _elsewhere(replaced: list[object]) -> list[str]:
    """Module attributes that still name such a function as it was, or hold it."""
    before = set(map(id, replaced))
    found = {
        f"{_name(module)}.{name}"
        for module in _modules()
        for name, value in [*_held(module).items()]
        if id(value) in before or not before.isdisjoint(map(id, _elements(value)))
    }
    return sorted(found)


def _elements(value: object) -> Collection[object]:
    if type(value) is dict:
        return [*cast("dict[object, object]", value).values()]
    return cast("list[object]", value) if type(value) in (list, tuple) else ()
