"""beartype enforces every hint without tensors; its violation becomes ours, with no repr made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeException

from shapecheck.errors import ContractTextError, ShapecheckError

# Hidden keyword by which a beartype wrapper calls the maker of its exception.
_HOOK = "__beartype_get_violation"
# Type checkers accept an int where a float is annotated; so does the contract.
_CONF = BeartypeConf(is_pep484_tower=True)

Fail = Callable[[str, object], Exception]


def guard(hints: Sequence[object], places: Sequence[str], fail: Fail) -> Callable[..., None] | None:
    """A function of as many values as hints that raises `fail(parameter, value)` for a wrong one.

    None when no hint says anything (`object`, `Any`). beartype's own maker of violations is
    replaced because it takes the repr of the value: on CUDA a tensor's repr waits for the device.
    """
    names = [f"value_{index}" for index in range(len(hints))]
    namespace: dict[str, Any] = {}
    exec(f"def check({', '.join(names)}): pass", namespace)
    bare = namespace["check"]
    bare.__annotations__ = dict(zip(names, hints, strict=True))
    try:
        checked = cast("Callable[..., None]", beartype(conf=_CONF)(bare))
    except BeartypeException as error:
        raise ContractTextError(
            f"SHP101 contract-syntax: {', '.join(places)}: beartype cannot check this hint "
            f"({type(error).__name__}); write a hint that it supports, or `object`"
        ) from error
    if checked is bare:
        return None
    defaults = checked.__kwdefaults__ or {}
    if _HOOK not in defaults:
        raise ShapecheckError(
            "this release of beartype makes its violations in another way than shapecheck knows; "
            "install 'beartype>=0.22,<0.24'"
        )

    def violation(*, pith_name: str, pith_value: object, **_context: object) -> Exception:
        return fail(pith_name, pith_value)

    checked.__kwdefaults__ = {**defaults, _HOOK: violation}
    return checked
