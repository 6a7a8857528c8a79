"""`@invariant`: relations beyond sizes, judged at level full because they may read data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from shapecheck.errors import ContractTextError
from shapecheck.spec import contract_of

F = TypeVar("F", bound=Callable[..., object])


def invariant(target: F) -> F:
    """Mark a method of a carrier, or make a decorator for an invariant of a whole contract.

    `@invariant` in a carrier: `def name(self)` or `def name(self, dims)`. `@invariant(method)`
    with a contracted method: a function whose parameters are among those of the method, `result`
    and `dims`. Both return a bool or a bool tensor. Raises ContractTextError for other names.
    """
    declared = contract_of(target)
    if declared is None:
        if not hasattr(target, "__code__"):
            raise ContractTextError(
                f"SHP101 contract-syntax: @invariant cannot see into a {type(target).__name__}; "
                "put it directly above the def"
            )
        if len(inspect.signature(target).parameters) not in (1, 2):
            raise ContractTextError(
                f"SHP101 contract-syntax: invariant {target.__qualname__} of a carrier takes "
                "(self) or (self, dims); for a whole contract write @invariant(method)"
            )
        target.__dict__["__shapecheck_invariant__"] = True
        return target
    if inspect.isgeneratorfunction(declared.function) or inspect.isasyncgenfunction(
        declared.function
    ):
        raise ContractTextError(
            f"SHP101 contract-syntax: {declared.where} is a generator and has no one result; put "
            "the invariant on the carrier that it yields"
        )
    contract = declared

    def register(function: Callable[..., object]) -> Callable[..., object]:
        known = {*contract.signature.parameters, "result", "dims"}
        for name in inspect.signature(function).parameters:
            if name not in known:
                raise ContractTextError(
                    f"SHP101 contract-syntax: invariant {function.__qualname__}: {name!r} is no "
                    f"parameter of {contract.where}; use among {', '.join(sorted(known))}"
                )
        contract.invariants = (*contract.invariants, function)
        return function

    return cast(Any, register)
