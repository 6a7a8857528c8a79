"""Reads one evaluated hint into a Spec, or refuses it: nothing turns into "unchecked"."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ForwardRef, NewType, TypeVar, Union, cast, get_args, get_origin

from jaxtyping import AbstractArray

from shapecheck.dims.parse import parse_shape
from shapecheck.dims.vocabulary import lookup
from shapecheck.errors import ContractTextError
from shapecheck.markers import (
    NO_DTYPE_OF_COUNTS,
    Counted,
    DtypeOf,
    IdsOf,
    IndexOf,
    InPhase,
    Model,
    counted,
)
from shapecheck.spec.model import (
    CarrierSpec,
    HintSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    Spec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
)
from shapecheck.spec.scope import Scope

ATTRIBUTE = "__shapecheck__"
_KEEP = "keep the one mark that is true"
_SEQUENCES = (list, collections.abc.Sequence, collections.abc.MutableSequence)


def read_hint(hint: object, where: str) -> Spec:
    """The spec of an evaluated hint; `where` names the field or parameter in refusals.

    Raises ContractTextError (SHP101, SHP102) for a tensor or carrier in a place that could not be
    checked, and for a malformed shape string.
    """
    hint = unalias(hint)
    if isinstance(hint, ForwardRef):
        raise refusal(where, "a TypeVar's bound is a string", "write the class itself as bound")
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated and (mentions_tensor(hint) or any(map(_is_mark, args))):
        return _marked(read_hint(args[0], where), args[1:], where)
    if not mentions_tensor(hint):
        return HintSpec(hint=hint)
    if is_tensor_hint(hint):
        return _tensor(hint, where)
    if origin is Union or origin is types.UnionType:
        return _union(args, where)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return SequenceSpec(container=tuple, item=read_hint(args[0], where))
        return TupleSpec(items=tuple(read_hint(arg, where) for arg in args))
    if origin in _SEQUENCES:
        return SequenceSpec(container=cast(type, origin), item=read_hint(args[0], where))
    if isinstance(hint, type) and ATTRIBUTE in vars(hint):
        return CarrierSpec(cls=hint)
    if (
        isinstance(origin, type)
        and ATTRIBUTE in vars(origin)
        and not any(map(mentions_tensor, args))
    ):
        return CarrierSpec(cls=origin)  # a generic carrier of other things
    if isinstance(hint, type):
        raise refusal(
            where,
            f"{hint.__name__} has tensor fields and is no carrier itself, so they would not be "
            "checked",
            f"put @carrier above {hint.__name__} (a dataclass), or annotate with a carrier",
        )
    raise refusal(
        where,
        f"a tensor or carrier inside {_name(hint)} would not be checked",
        "use a carrier field, an Optional, a tuple, a list or a Sequence",
    )


def mentions_tensor(hint: object) -> bool:
    """Whether a tensor annotation or a carrier occurs anywhere in `hint`."""
    hint = unalias(hint)
    if is_tensor_hint(hint):
        return True
    if isinstance(hint, type) and get_origin(hint) is None:
        return hasattr(hint, ATTRIBUTE) or any(map(mentions_tensor, _record_fields(hint)))
    if get_origin(hint) in (typing.Literal, type):  # a class as an argument is no tensor
        return False
    return any(
        mentions_tensor(arg)
        for part in (*get_args(hint), get_origin(hint))
        for arg in (cast("list[object]", part) if isinstance(part, list) else [part])
        if arg is not None
    )


def _record_fields(cls: type) -> Iterator[object]:
    """The field hints of a dataclass, NamedTuple or TypedDict, classes and unreadable ones aside.

    What such a class holds crosses with it, so a tensor in it must not go unchecked.
    """
    named = tuple in cls.__mro__ and hasattr(cls, "_fields")
    if not (named or hasattr(cls, "__dataclass_fields__") or typing.is_typeddict(cls)):
        return
    for base in cls.__mro__:
        scope = Scope(base.__module__, base.__qualname__, {})
        for annotation in inspect.get_annotations(base).values():
            try:
                hint = scope.evaluate(annotation, base)
            except Exception:  # another's annotation: it may say anything, or nothing yet
                continue
            if is_tensor_hint(hint) or not isinstance(hint, type):
                yield hint


def is_tensor_hint(hint: object) -> bool:
    """Whether `hint` is a jaxtyping annotation such as `Int64[Tensor, "bs topk"]`."""
    return isinstance(hint, type) and issubclass(hint, AbstractArray)


def refusal(where: str, what: str, remedy: str) -> ContractTextError:
    """The SHP101 for the hint at `where`."""
    return ContractTextError(f"SHP101 contract-syntax: {where}: {what}; {remedy}")


def _at(where: str, error: ContractTextError) -> ContractTextError:
    """The same error of the hint at `where`."""
    code, _, rest = str(error).partition(": ")
    return ContractTextError(f"{code}: {where}: {rest}")


def undefined(where: str, name: str | None) -> ContractTextError:
    """The SHP101 for a name of an annotation that is still not defined at the first call."""
    remedy = "import it at run time or define it before the first call"
    if name is not None and lookup(name) is not None:
        remedy = f"a shape is a string: write {name!r} in quotes (ruff's UP037 removes them)"
    return refusal(where, f"the name {name!r} of an annotation is not defined", remedy)


def _tensor(hint: object, where: str) -> TensorSpec:
    array = cast(Any, hint)  # jaxtyping builds these classes at run time
    cls = array.array_type
    mro = getattr(cls, "__mro__", ())
    if not any((base.__module__, base.__name__) == ("torch", "Tensor") for base in mro):
        raise refusal(where, f"{_name(cls)} is not a torch.Tensor", "write Float[Tensor, ...]")
    try:
        shape = parse_shape(array.dim_str)
    except ContractTextError as error:
        raise _at(where, error) from None
    dtypes: object = array.dtypes  # a tuple of names; a sentinel object means any
    return TensorSpec(
        cls=cls,
        shape=shape,
        kind=array.dtype.__name__,
        dtypes=cast("tuple[str, ...]", dtypes) if isinstance(dtypes, tuple) else None,
    )


def _union(args: tuple[object, ...], where: str) -> Spec:
    items = [arg for arg in args if arg is not types.NoneType]
    if len(items) == 1:
        inner = read_hint(items[0], where)
        return inner if isinstance(inner, OptionalSpec) else OptionalSpec(item=inner)
    if all(_phase(item) for item in items):
        union: Spec = _phased(items, where)
    else:
        specs = [read_hint(item, where) for item in items]
        # A subclass before its base: the first class that a value is an instance of is checked.
        carriers = sorted(
            (spec for spec in specs if isinstance(spec, CarrierSpec)),
            key=lambda spec: -len(spec.cls.__mro__),
        )
        if len(carriers) != len(specs):
            raise refusal(
                where,
                "only carriers can be told apart in a union",
                'give each alternative its phase("..."), or split the field',
            )
        union = UnionSpec(items=tuple(carriers))
    return OptionalSpec(item=union) if len(items) != len(args) else union


def _phased(items: list[object], where: str) -> PhasedSpec:
    alternatives: list[tuple[str, Spec]] = []
    for item in items:
        name = _phase(item)
        if name is None or name in dict(alternatives):
            raise refusal(where, f"phase {name!r} has two alternatives", "keep one per phase")
        spec = read_hint(item, where)
        if isinstance(spec, PhasedSpec):
            ((_, spec),) = spec.alternatives
        alternatives.append((name, spec))
    return PhasedSpec(alternatives=tuple(alternatives))


def _phase(hint: object) -> str | None:
    hint = unalias(hint)
    if get_origin(hint) is not Annotated:
        return None
    return next((mark.name for mark in get_args(hint)[1:] if isinstance(mark, InPhase)), None)


def _marked(spec: Spec, marks: tuple[object, ...], where: str) -> Spec:
    phase: str | None = None
    for mark in marks:
        match mark:
            case DtypeOf(model=model):
                spec = _on_tensors(spec, where, "dtype", partial(_of_dtype, where, model))
            case IdsOf() | IndexOf():
                call = "ids" if isinstance(mark, IdsOf) else "indexes"
                try:
                    said = counted(mark)
                except ContractTextError as error:
                    raise _at(where, error) from None
                spec = _on_tensors(spec, where, call, partial(_counting, where, call, said))
            case InPhase(name=name) if phase is None:
                phase = name
            case str():  # documentation for readers
                continue
            case _:
                raise refusal(
                    where,
                    f"{_name(mark)} means nothing to a tensor contract",
                    "use dtype(...), ids(...), indexes(...) or phase(...); write relations as an "
                    "@invariant",
                )
    return PhasedSpec(alternatives=((phase, spec),)) if phase else spec


def _is_mark(mark: object) -> bool:
    return isinstance(mark, DtypeOf | IdsOf | IndexOf | InPhase)


def _of_dtype(where: str, model: Model, spec: TensorSpec) -> TensorSpec:
    if spec.dtype_of not in (None, model):
        raise refusal(where, "dtype(...) says both models", "keep one mark")
    if spec.indexes is not None:
        said = Counted(spec.indexes, spec.ids_of, spec.pad)
        raise refusal(where, NO_DTYPE_OF_COUNTS.format(said), _KEEP)
    return replace(spec, dtype_of=model)


def _counting(where: str, call: str, said: Counted, spec: TensorSpec) -> TensorSpec:
    if not (spec.dtypes is None or any(one.startswith(("int", "uint")) for one in spec.dtypes)):
        raise refusal(
            where, f"{call}(...) marks whole numbers", "write Int64[Tensor, ...] or Int32"
        )
    if spec.indexes is not None:
        wrong = Counted(spec.indexes, spec.ids_of, spec.pad).contradiction(said)
        if wrong is not None:
            raise refusal(where, wrong, _KEEP)
    if spec.dtype_of is not None:
        raise refusal(where, NO_DTYPE_OF_COUNTS.format(said), _KEEP)
    return replace(spec, ids_of=said.ids_of, indexes=said.axis, pad=said.pad)


def _on_tensors(
    spec: Spec, where: str, call: str, change: Callable[[TensorSpec], TensorSpec]
) -> Spec:
    match spec:
        case TensorSpec():
            return change(spec)
        case OptionalSpec(item=item):
            return OptionalSpec(item=_on_tensors(item, where, call, change))
        case SequenceSpec(container=container, item=item):
            return SequenceSpec(container=container, item=_on_tensors(item, where, call, change))
        case _:
            raise refusal(where, f"{call}(...) marks a tensor", "put it around the tensor itself")


def unalias(hint: object) -> object:
    """What a NewType, a `type` alias or a bound TypeVar stands for."""
    while True:
        if isinstance(hint, NewType):
            hint = hint.__supertype__
        elif isinstance(hint, TypeVar) and (hint.__bound__ or hint.__constraints__):
            # Not the TypeVar itself: a tensor or carrier that it stands for would go unchecked.
            hint = hint.__bound__ or Union[hint.__constraints__]  # noqa: UP007  # known only here
        elif type(hint).__name__ == "TypeAliasType":  # `type X = ...`, Python 3.12
            hint = cast(Any, hint).__value__
        else:
            return hint


def _name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)
