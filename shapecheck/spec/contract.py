"""The contract of a function: attached as `__shapecheck__`, readable without a call."""

from __future__ import annotations

import collections.abc
import inspect
import keyword
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ForwardRef, TypeVar, Union, cast, get_args, get_origin

from shapecheck.dims.model import Dims
from shapecheck.errors import ContractTextError
from shapecheck.spec.carrier import CarrierContract, Invariant
from shapecheck.spec.declared import declare
from shapecheck.spec.hints import ATTRIBUTE, mentions_tensor, read_hint, refusal, unalias, undefined
from shapecheck.spec.model import (
    CarrierSpec,
    ContractSpec,
    HintSpec,
    ParameterSpec,
    SequenceSpec,
    Spec,
)
from shapecheck.spec.occurrences import refuse_loose
from shapecheck.spec.scope import Scope

Function = Callable[..., object]
_YIELDS = (
    collections.abc.Generator,
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
)
_SELF: object = vars(typing)["Self"]
_RECEIVERS = ("self", "cls")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(slots=True, eq=False, weakref_slot=True)
class FunctionContract:
    """What `@contract` knows of a function.

    `static` says that it is a staticmethod, so that no first parameter is a receiver; `generator`
    and `async_generator` what it is when it is declared, since a trace puts a stand-in there.
    """

    function: Function
    phase: str | None
    scope: Scope
    signature: inspect.Signature
    static: bool = False
    generator: bool = False
    async_generator: bool = False
    invariants: tuple[Invariant, ...] = ()
    dims_parameter: str | None = None
    dims_optional: bool = False
    owner: type | None = None
    _hints: dict[str, object] = field(default_factory=dict[str, object])
    _spec: ContractSpec | None = None

    @property
    def where(self) -> str:
        """`Class.method` or `function`: how messages name it."""
        return self.function.__qualname__.rpartition("<locals>.")[2]

    @property
    def name(self) -> str:
        """The name of the function, fit for generated code: a lambda has none of its own."""
        name = self.function.__name__
        return name if name.isidentifier() and not keyword.iskeyword(name) else "contracted"

    @property
    def receiver(self) -> str | None:
        """The name of `self` or `cls`, whatever a method calls it; None for a plain function."""
        first = next(iter(self.signature.parameters.values()), None)
        if self.static or first is None or first.kind not in _POSITIONAL:
            return None
        body = self.where.rpartition(".")[0]
        bare = first.annotation is inspect.Parameter.empty
        return first.name if first.name in _RECEIVERS or (body and bare) else None

    @property
    def spec(self) -> ContractSpec:
        """The resolved contract; raises ContractTextError for a name that is still undefined."""
        missing = self.resolve()
        if missing is not None or self._spec is None:
            raise undefined(self.where, missing)
        return self._spec

    def resolve(self, *, at_decoration: bool = False) -> str | None:
        """Read what can be read; the first undefined name, or None when all is known.

        A method is complete only once its class is: `self` may be a carrier.
        """
        if self._spec is not None:
            return None
        owner = self.owner or self.scope.enclosing_class()
        missing = self._evaluate(owner)
        spec = self._read(self._hints, owner)
        self.dims_parameter = spec.dims_parameter
        if missing is None:
            self.scope.release()
            if not (at_decoration and self.receiver is not None):
                refuse_loose(spec, names_bind=self.receiver is None and spec.dims_parameter is None)
                self._spec = spec
        return missing

    def adopt(self, owner: type) -> None:
        """Be a method of `owner`, which is complete now: what named it can be read."""
        self.owner = owner
        self.resolve()

    def _evaluate(self, owner: type | None) -> str | None:
        missing: str | None = None
        for name, annotation in self.function.__annotations__.items():
            if name not in self._hints:
                try:
                    hint = self.scope.evaluate(annotation, owner)
                    self._hints[name] = _own(hint, owner, self.scope)
                except NameError as error:
                    missing = missing or error.name or str(error)
        return missing

    def _read(self, hints: dict[str, object], owner: type | None) -> ContractSpec:
        parameters: list[ParameterSpec] = []
        dims_parameter: str | None = None
        for name, parameter in self.signature.parameters.items():
            where = f"{self.where}({name})"
            if name == self.receiver == "self" and name not in hints and owner is not None:
                if isinstance(owner.__dict__.get(ATTRIBUTE), CarrierContract):
                    parameters.append(ParameterSpec(name=name, spec=CarrierSpec(cls=owner)))
            elif name in hints:
                if _is_dims(hints[name]):
                    if dims_parameter is not None:
                        raise refusal(
                            where,
                            f"{dims_parameter} is annotated Dims too",
                            "annotate the one that the tensors do not follow `object`",
                        )
                    dims_parameter = name
                    self.dims_optional = _admits_none(hints[name])
                    continue
                spec = read_hint(hints[name], where)
                if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                    spec = SequenceSpec(container=tuple, item=spec)
                elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    if not isinstance(spec, HintSpec):
                        raise refusal(where, "tensors in **kwargs have no names", "name them")
                    spec = HintSpec(hint=dict[str, spec.hint])
                parameters.append(ParameterSpec(name=name, spec=spec))
        yields, returns = self._results(hints)
        return ContractSpec(
            where=self.where,
            phase=self.phase,
            parameters=tuple(parameters),
            returns=returns,
            yields=yields,
            dims_parameter=dims_parameter,
        )

    def _results(self, hints: dict[str, object]) -> tuple[Spec | None, Spec | None]:
        where = f"{self.where} -> return"
        if "return" not in hints:
            return None, None
        hint = hints["return"]
        if not (self.generator or self.async_generator):
            return None, read_hint(hint, where)
        args = get_args(hint)
        if get_origin(hint) not in _YIELDS or not args:
            if mentions_tensor(hint):
                raise refusal(
                    where, "a generator yields", "annotate it Iterator[...] or Generator[...]"
                )
            return None, None
        if self.generator and len(args) == 3:
            if mentions_tensor(args[1]):
                raise refusal(where, "a tensor sent into a generator crosses unseen", "pass it in")
            return read_hint(args[0], where), read_hint(args[2], where)
        return read_hint(args[0], where), None


def declare_contract(
    function: Function, *, phase: str | None, static: bool, depth: int
) -> FunctionContract:
    """Attach a FunctionContract to `function`, reading every annotation that can be read already.

    Raises ContractTextError: SHP101, SHP102 for an annotation, SHP103 for a contract that would
    check nothing.
    """
    signature = inspect.signature(function)
    for name in signature.parameters:
        if name.startswith("_sc_"):
            raise refusal(
                function.__qualname__, f"parameter {name} has our prefix", "rename the parameter"
            )
    contract = FunctionContract(
        function=function,
        phase=phase,
        scope=Scope.of_function(function, depth + 1),
        signature=signature,
        static=static,
        generator=inspect.isgeneratorfunction(function),
        async_generator=inspect.isasyncgenfunction(function),
    )
    contract.resolve(at_decoration=True)
    try:
        setattr(function, ATTRIBUTE, contract)
    except AttributeError:
        raise ContractTextError(
            f"SHP101 contract-syntax: {function!r} takes no attributes; write @contract on a "
            "function defined with def"
        ) from None
    declare(contract)
    return contract


def contract_of(function: object) -> FunctionContract | None:
    """The contract of a function, method, classmethod, staticmethod or property, or None."""
    if isinstance(function, property):
        parts = map(contract_of, (function.fget, function.fset, function.fdel))
        return next((part for part in parts if part is not None), None)
    found = getattr(getattr(function, "__func__", function), ATTRIBUTE, None)
    return found if isinstance(found, FunctionContract) else None


def _is_dims(hint: object) -> bool:
    hint = unalias(hint)
    if get_origin(hint) is Annotated:
        return _is_dims(get_args(hint)[0])
    if _admits_none(hint):
        return any(_is_dims(arg) for arg in get_args(hint))
    return isinstance(hint, type) and issubclass(hint, Dims)


def _admits_none(hint: object) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _own(hint: object, owner: type | None, scope: Scope) -> object:
    """`hint` with classes put where it says `Self` or a TypeVar with a string for its bound.

    Raises NameError until the class exists.
    """
    if isinstance(hint, TypeVar) and isinstance(hint.__bound__, ForwardRef):
        return scope.evaluate(hint.__bound__.__forward_arg__, owner)
    if hint is _SELF:
        if owner is None:
            raise NameError("Self", name="Self")
        return owner
    args = get_args(hint)
    kept = tuple(_own(arg, owner, scope) for arg in args)
    if all(new is old for new, old in zip(kept, args, strict=True)):
        return hint
    if isinstance(hint, types.UnionType):
        return Union[kept]  # noqa: UP007  # the members are known only now
    if isinstance(hint, types.GenericAlias):
        return types.GenericAlias(cast(type, hint.__origin__), kept)
    return cast(Any, hint).copy_with(kept[:1] if get_origin(hint) is Annotated else kept)
