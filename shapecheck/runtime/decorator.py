"""`@contract`: attaches a contract to a function, and at any level but off enforces it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar, cast, overload

from shapecheck.config import Level, settings
from shapecheck.errors import ContractTextError
from shapecheck.runtime.dispatch import dispatcher
from shapecheck.runtime.plan import Mode
from shapecheck.spec import declare_contract

F = TypeVar("F")


@overload
def contract(function: F, /) -> F: ...
@overload
def contract(*, phase: str | Enum | None = None) -> Callable[[F], F]: ...


def contract(function: object = None, /, *, phase: str | Enum | None = None) -> object:
    """Check every tensor that crosses this function, in and out, against its annotations.

    Works on functions, methods, classmethods and staticmethods in either order, properties,
    async functions, generators and async generators. At level off the function comes back as it
    is, with the contract as its attribute `__shapecheck__`. An override has no contract unless it
    is decorated itself. Raises ContractTextError (SHP101, SHP102, SHP103) for a contract that is
    malformed or would check nothing; a call raises ShapeContractError.
    """
    name = str(phase.value) if isinstance(phase, Enum) else phase
    if name is not None and not (isinstance(name, str) and name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ContractTextError(
            f"SHP101 contract-syntax: @contract(phase={name!r}): name the phase, for example "
            "phase='decode', or leave it out"
        )
    if function is None:
        return lambda decorated: _decorate(decorated, name, depth=2)  # pyright: ignore
    return _decorate(function, name, depth=2)


def _decorate(function: object, phase: str | None, *, depth: int, static: bool = False) -> object:
    match function:
        case classmethod() | staticmethod():
            return _rewrapped(function, phase, depth=depth + 1)  # pyright: ignore[reportUnknownArgumentType]  # no parameters to know
        case property():
            return _property(function, phase, depth=depth + 1)
        case type():
            raise ContractTextError(
                f"SHP101 contract-syntax: {function.__name__} is a class; put @carrier on a "
                "dataclass that crosses, and @contract on functions"
            )
        case str():
            raise ContractTextError(
                f"SHP101 contract-syntax: @contract({function!r}): write "
                f"@contract(phase={function!r})"
            )
        case _ if hasattr(function, "__code__"):
            declared = declare_contract(
                cast("Callable[..., object]", function), phase=phase, static=static, depth=depth
            )
            now = settings()
            if now.level is Level.OFF:
                return function
            return dispatcher(declared, Mode(level=now.level, every=now.every))
        case _:
            raise ContractTextError(
                f"SHP101 contract-syntax: @contract cannot see into a {type(function).__name__}; "
                "put it directly above the def"
            )


def _rewrapped(found: object, phase: str | None, *, depth: int) -> object:
    """A classmethod or staticmethod again, around what became of its function."""
    static = isinstance(found, staticmethod)
    inner: object = cast(Any, found).__func__
    made = cast(Any, _decorate(inner, phase, depth=depth + 1, static=static))
    if made is inner:
        return found
    return staticmethod(made) if static else classmethod(made)


def _property(found: property, phase: str | None, *, depth: int) -> property:
    parts = [found.fget, found.fset, found.fdel]
    if not any(part is not None and _annotated(part) for part in parts):
        raise ContractTextError(
            f"SHP103 loose-dim: a property of {getattr(found.fget, '__qualname__', 'a callable')} "
            "has no annotation, so its contract checks nothing; annotate what it returns, or "
            "remove @contract"
        )
    made = [
        part if part is None or not _annotated(part) else _decorate(part, phase, depth=depth + 1)
        for part in parts
    ]
    if made == parts:  # level off
        return found
    return property(*cast("list[Any]", made), doc=found.__doc__)


def _annotated(part: Callable[..., object]) -> bool:
    hints: dict[str, object] = getattr(part, "__annotations__", {})
    return any(hint is not None and hint != "None" for hint in hints.values())
