"""`@carrier`: a dataclass that is checked where it crosses, never in its `__init__`."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from shapecheck.dims.model import Dims
from shapecheck.errors import ContractTextError, ShapecheckError
from shapecheck.runtime.emit import Emitter
from shapecheck.runtime.numbers import Numbers, variable
from shapecheck.runtime.opened import Value
from shapecheck.runtime.plan import judges
from shapecheck.runtime.report import Reporter
from shapecheck.runtime.stats import Tally
from shapecheck.runtime.tensors import class_name
from shapecheck.runtime.text import INDENT, Text, build
from shapecheck.spec import CarrierSpec, contract_of, declare_carrier

T = TypeVar("T")


def carrier(cls: type[T]) -> type[T]:
    """Mark a dataclass as crossing boundaries, and give it `check(dims, *, phase=None)`.

    The class itself comes back at every level. Raises ContractTextError (SHP101, SHP102) for a
    class that is no dataclass and for fields that could not be checked.
    """
    declare_carrier(cls, depth=1)
    attach(cls, "check", check)
    adopt(cls)
    return cls


def attach(cls: type, name: str, method: object) -> None:
    """Give `cls` the method, unless the user has a use for the name already."""
    own = getattr(cls, name, None)
    ours = getattr(own, "__module__", "").startswith("shapecheck.runtime.")
    if name in _field_names(cls) or (own is not None and not ours):
        raise ContractTextError(
            f"SHP101 contract-syntax: {cls.__name__}.{name} hides the method of a carrier; "
            "rename yours"
        )
    setattr(cls, name, method)


def _field_names(cls: type) -> set[str]:
    return {item.name for item in dataclasses.fields(cls)}


def adopt(cls: type) -> None:
    """Tell the contracts in a carrier that their `self` and `Self` are carriers.

    Raises ContractTextError for a contract that can be judged only now.
    """
    for value in list(vars(cls).values()):
        declared = contract_of(value)
        if declared is not None:
            declared.adopt(cls)


def check(self: object, dims: Dims | None = None, *, phase: str | None = None) -> None:
    """Every field of this carrier is as annotated, its invariants included.

    Raises ShapeContractError; `phase` chooses among the alternatives of a field. In a trace it is
    a finding of the trace instead.
    """
    cls = type(self)
    where = f"{cls.__qualname__.rpartition('<locals>.')[2]}.check"
    if not isinstance(dims, Dims | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapecheckError(f"{where}: dims is {class_name(dims)}; pass the Dims of the engine")
    reporter = Reporter(where=where, phase=phase, dims=dims, tally=Tally(where))
    namespace = judges(reporter)
    emitter = Emitter(
        text=Text(namespace), reporter=reporter, numbers=Numbers(dims), phase=phase, values=True
    )
    emitter.check([Value("carrier", "carrier", CarrierSpec(cls=cls))])
    maybe = [f"{INDENT}{variable(name)} = None" for name in sorted(emitter.numbers.maybe)]
    source = "\n".join(["def check(carrier):", *maybe, *emitter.text.lines, ""])
    build(source, "check", namespace)(self)
