"""The contract of a carrier class: its fields, resolved when their names exist."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from shapecheck.errors import ContractTextError
from shapecheck.spec.hints import ATTRIBUTE, mentions_tensor, read_hint, refusal, undefined
from shapecheck.spec.model import (
    CarrierSpec,
    FieldSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TupleSpec,
    UnionSpec,
)
from shapecheck.spec.scope import Scope

Invariant = Callable[..., object]


@dataclass(slots=True, eq=False)
class CarrierContract:
    """What `@carrier` or `@graph_buffers` knows of a class; attached as `__shapecheck__`.

    `live` is the carrier a graph buffer is filled from, None for a plain carrier or when it was
    not named.
    """

    cls: type
    scope: Scope
    static_buffers: bool = False
    live: type | None = None
    invariants: tuple[Invariant, ...] = ()
    _known: dict[str, FieldSpec] = field(default_factory=dict[str, FieldSpec])
    _complete: bool = False

    @property
    def fields(self) -> tuple[FieldSpec, ...]:
        """Every field in order; raises ContractTextError for a name that is still undefined."""
        missing = self.resolve()
        if missing is not None:
            raise undefined(self.cls.__name__, missing)
        return tuple(self._known[item.name] for item in dataclasses.fields(self.cls))

    def resolve(self) -> str | None:
        """Read what can be read; the first undefined name, or None when all is known."""
        if self._complete:
            return None
        missing: str | None = None
        for item in dataclasses.fields(self.cls):
            if item.name in self._known:
                continue
            where = f"{self.cls.__name__}.{item.name}"
            try:
                hint = self._scope_of(item.name).evaluate(item.type, self.cls)
            except NameError as error:
                missing = missing or error.name or str(error)
                continue
            self._known[item.name] = FieldSpec(name=item.name, spec=read_hint(hint, where))
        if missing is None:
            _refuse_recursion(self.cls, tuple(self._known.values()), (self.cls,))
            self._complete = True
            self.scope.release()
        return missing

    def _scope_of(self, name: str) -> Scope:
        """The scope of the base that annotates `name`: a field is read where it was written."""
        for base in self.cls.__mro__:
            if name in inspect.get_annotations(base):
                if base is self.cls:
                    return self.scope
                inherited = base.__dict__.get(ATTRIBUTE)
                if isinstance(inherited, CarrierContract):
                    return inherited.scope
                return Scope(base.__module__, base.__qualname__, {}, self.scope.frame)
        return self.scope


def carrier_of(cls: type) -> CarrierContract:
    """The contract of a carrier class; raises ContractTextError for any other class."""
    found = cls.__dict__.get(ATTRIBUTE)
    if not isinstance(found, CarrierContract):
        raise ContractTextError(
            f"SHP101 contract-syntax: {cls.__name__} is not a carrier; put @carrier above its "
            "@dataclass"
        )
    return found


def declare_carrier(
    cls: type, *, depth: int, static_buffers: bool = False, live: type | None = None
) -> CarrierContract:
    """Attach a CarrierContract to a dataclass, reading every field that can be read already.

    Raises ContractTextError: SHP101 when `cls` is no dataclass, SHP101/SHP102 for its fields.
    """
    mark = "@graph_buffers" if static_buffers else "@carrier"
    if not (isinstance(cls, type) and "__dataclass_fields__" in cls.__dict__):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ContractTextError(
            f"SHP101 contract-syntax: {mark} marks a dataclass and {cls!r} is none (yet); write "
            f"{mark} above @dataclass"
        )
    for base in getattr(cls, "__orig_bases__", ()):
        if any(map(mentions_tensor, get_args(base))):
            raise refusal(
                cls.__name__,
                "a tensor or carrier in the brackets of a base would not be checked",
                "annotate the field in this class",
            )
    invariants = tuple(
        value
        for value in _attributes(cls)
        if getattr(value, "__shapecheck_invariant__", None) is True
    )
    contract = CarrierContract(
        cls, Scope.of_class(cls, depth + 1), static_buffers, live, invariants
    )
    setattr(cls, ATTRIBUTE, contract)  # first: a field may name the class itself
    contract.resolve()
    return contract


def _attributes(cls: type) -> list[Invariant]:
    seen: dict[str, Invariant] = {}
    for base in reversed(cls.__mro__):
        seen.update(base.__dict__)
    return list(seen.values())


def _refuse_recursion(cls: type, fields: tuple[FieldSpec, ...], above: tuple[type, ...]) -> None:
    for item in fields:
        for inner in carriers_in(item.spec):
            if inner in above:
                raise refusal(
                    f"{cls.__name__}.{item.name}",
                    f"{inner.__name__} contains itself",
                    "a carrier has a fixed depth; hold the chain in a list",
                )
            known = inner.__dict__.get(ATTRIBUTE)
            if isinstance(known, CarrierContract):
                _refuse_recursion(inner, tuple(known._known.values()), (*above, inner))  # pyright: ignore[reportPrivateUsage]


def carriers_in(spec: Spec) -> list[type]:
    """The carrier classes named directly by a spec, without opening them."""
    match spec:
        case CarrierSpec(cls=cls):
            return [cls]
        case OptionalSpec(item=item) | SequenceSpec(item=item):
            return carriers_in(item)
        case UnionSpec(items=items) | TupleSpec(items=items):
            return [cls for item in items for cls in carriers_in(item)]
        case PhasedSpec(alternatives=alternatives):
            return [cls for _, item in alternatives for cls in carriers_in(item)]
        case _:
            return []
