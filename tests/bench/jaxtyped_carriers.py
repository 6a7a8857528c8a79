"""jaxtyped_carriers: the engine's own carriers as jaxtyping and beartype check them.

A twin has the fields and annotations of a carrier and is checked when it is constructed, which is
what a user of the two writes. jaxtyping cannot evaluate a product before its factors are bound, so
a product is a name of its own in a twin: it checks less than the carrier does, at about equal cost.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

from beartype import beartype
from jaxtyping import jaxtyped
from torch import Tensor

from engine.observe.contracts import Crossing

Twin = Callable[..., object]
_NO_NAME = re.compile(r"\W+")


def twin_of(carrier: type) -> Twin:
    """A dataclass with this carrier's tensors, checked by jaxtyping and beartype."""
    fields = [
        (field.name, _plain(field.type))
        for field in dataclasses.fields(carrier)
        if _has_tensor(field.type)
    ]
    made = dataclasses.make_dataclass(f"Jax{carrier.__name__}", fields)
    return cast(Twin, jaxtyped(typechecker=beartype)(made))


def checks_of(crossings: list[Crossing]) -> list[Callable[[], object]]:
    """One construction for every carrier that crosses, on its way in and on its way out."""
    twins: dict[type, Twin] = {}
    calls: list[Callable[[], object]] = []
    for crossing in crossings:
        for value in (*crossing.arguments, *_parts(crossing.result)):
            cls = type(value)
            if not dataclasses.is_dataclass(cls):
                continue
            if cls not in twins:
                twins[cls] = twin_of(cls)
            tensors = _tensors(value, cls)
            if tensors:
                calls.append(lambda twin=twins[cls], tensors=tensors: twin(**tensors))
    return calls


def _tensors(value: object, cls: type) -> Mapping[str, object]:
    names = [field.name for field in dataclasses.fields(cls) if _has_tensor(field.type)]
    return {name: getattr(value, name) for name in names}


def _parts(result: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", result) if isinstance(result, tuple) else (result,)


def _has_tensor(annotation: Any) -> bool:
    if hasattr(annotation, "array_type"):
        return annotation.array_type is Tensor
    return any(_has_tensor(part) for part in get_args(annotation))


def _plain(annotation: Any) -> Any:
    """The annotation without this project's markers, its products as names."""
    arguments = get_args(annotation)
    if type(None) in arguments:
        return _plain(next(part for part in arguments if part is not type(None))) | None
    if arguments:
        return _plain(arguments[0])  # Annotated
    dims = " ".join(_NO_NAME.sub("_", axis) for axis in annotation.dim_str.split())
    return annotation.dtype[Tensor, dims]
