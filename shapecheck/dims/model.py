"""Dims: the number, owner and origin of every named dimension of one target/draft pair."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    PrivateAttr,
    StrictInt,
    ValidationError,
    field_serializer,
    field_validator,
)

from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.model import Diagnostic, DimPair
from shapecheck.dims.vocabulary import Owner, lookup, near_misses
from shapecheck.errors import ShapecheckError, ShapeContractError

if TYPE_CHECKING:
    from shapecheck.dims.configs import Algorithm


class Size(BaseModel):
    """One dimension's number and where it comes from.

    `value` is None when the algorithm has no such tensor at all (STANDALONE carries no
    `recurrent_hidden`): a field of that width must then be None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: StrictInt | None
    owner: Owner
    origin: str

    @field_validator("value")
    @classmethod
    def _not_negative(cls, value: int | None) -> int | None:
        if value is not None and value < 0:
            raise ValueError("a size is 0 or more")
        return value


class Dims(BaseModel):
    """Maps each name of the vocabulary to its Size, bound once from the two configs.

    `target_dtype` and `draft_dtype` are torch dtype names ("bfloat16"), what
    `dtype("target"|"draft")` refers to. Two names with equal numbers stay two names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sizes: Mapping[str, Size]
    target_dtype: str = "float32"
    draft_dtype: str | None = None

    _numbers: dict[str, int | None] = PrivateAttr(default_factory=dict[str, "int | None"])

    def __init__(self, /, **fields: Any) -> None:
        """Raises ShapeContractError (SHP201) for what is no size and no dtype's name."""
        try:
            super().__init__(**fields)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            name = next((str(one) for one in first["loc"] if lookup(str(one))), place)
            raise _refusal(f"Dims: {place}: {first['msg']}", name, first["input"]) from None

    @field_validator("sizes")
    @classmethod
    def _known_names(cls, sizes: Mapping[str, Size]) -> Mapping[str, Size]:
        for name in sizes:
            if lookup(name) is None:
                near = near_misses(name)
                hint = f"did you mean {near[0]}?" if near else "declare it first"
                raise ValueError(f"{name!r} is not in the vocabulary: {hint}")
        return MappingProxyType(dict(sizes))

    @field_serializer("sizes")
    def _plain(self, sizes: Mapping[str, Size]) -> dict[str, Size]:
        return dict(sizes)

    # A mapping proxy can be neither pickled nor copied, and ranks are spawned with their Dims.
    def __reduce__(self) -> tuple[Callable[..., Dims], tuple[type[Dims], dict[str, object]]]:
        return _rebuilt, (type(self), {**dict(self), "sizes": dict(self.sizes)})

    def __deepcopy__(self, memo: dict[int, object] | None = None) -> Self:
        """Itself: nothing in it can change."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Itself, or a new Dims with these fields: checked, and with numbers of its own."""
        return type(self)(**{**dict(self), **update}) if update else self

    def __hash__(self) -> int:
        return hash((frozenset(self._numbers.items()), self.target_dtype, self.draft_dtype))

    def model_post_init(self, context: object, /) -> None:
        """Keep the plain numbers apart: an engine reads them on every step."""
        self._numbers = {name: size.value for name, size in self.sizes.items()}

    def __getitem__(self, name: str) -> int:
        """The number of `name`; ShapeContractError when Dims has none, saying where to set it."""
        number = self._numbers.get(name)
        if number is None:
            raise _refusal(self._missing(name), name, None)
        return number

    def _missing(self, name: str) -> str:
        size = self.sizes.get(name)
        if size is not None:
            return f"{name} has no number: {size.origin}; a field of this width must be None"
        if lookup(name) is None:
            near = near_misses(name)
            hint = f"did you mean {near[0]}?" if near else f"declare it: declare({name!r}, owner=…)"
            return f"{name!r} is not in the vocabulary: {hint}"
        return (
            f"Dims has no number for {name}: add it with dims.with_sizes({name}=(number, origin))"
        )

    @property
    def symbolic(self) -> bool:
        """Whether the numbers are symbols of a trace."""
        return False

    def get(self, name: str) -> int | None:
        """The number of `name`, or None when it has none in this pair."""
        return self._numbers.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self.sizes

    def names(self) -> Iterator[str]:
        """Every name this Dims speaks of, also those whose value is None."""
        return iter(self.sizes)

    def owner(self, name: str) -> Owner:
        """Whose size `name` is."""
        size = self.sizes.get(name)
        declared = lookup(name)
        if size is not None:
            return size.owner
        if declared is not None:
            return declared.owner
        raise ShapecheckError(self._missing(name))

    def origin(self, name: str) -> str:
        """Where the number of `name` comes from, fit to be shown."""
        size = self.sizes.get(name)
        if size is None:
            raise ShapecheckError(self._missing(name))
        return size.origin

    def same_number(self, number: int) -> list[str]:
        """Every name whose number this is, in order: what a wrong size may have been."""
        return [name for name, value in self._numbers.items() if value == number]

    def with_sizes(self, **sizes: tuple[int, str]) -> Self:
        """A copy with sizes added or replaced, each given as (number, origin).

        Raises ShapecheckError for a name outside the vocabulary, ShapeContractError (SHP201) for
        what is no size.
        """
        added: dict[str, Size] = {}
        for name, given in sizes.items():
            declared = lookup(name)
            if declared is None:
                raise ShapecheckError(self._missing(name))
            try:
                value, origin = given
                added[name] = Size(value=value, owner=declared.owner, origin=origin)
            except (TypeError, ValueError):  # pydantic's errors are ValueErrors
                raise _refusal(
                    f"with_sizes({name}={given!r}): give (number, origin), the number whole and "
                    "0 or more",
                    name,
                    given,
                ) from None
        return self.model_copy(update={"sizes": {**self.sizes, **added}})

    @staticmethod
    def from_configs(
        target: str | os.PathLike[str] | Mapping[str, object],
        draft: str | os.PathLike[str] | Mapping[str, object] | None = None,
        *,
        algorithm: Algorithm,
        num_steps: int,
        topk: int = 1,
        num_draft_tokens: int | None = None,
        num_aux: int | None = None,
        tp: int = 1,
        draft_tp: int | None = None,
    ) -> Dims:
        """Dims of a pair, read from two HF `config.json` files (paths, folders or mappings).

        `draft` is None for n-gram, and for MTP layers inside the target's checkpoint.
        `num_draft_tokens` defaults to num_steps+1 when topk is 1 and is required otherwise.
        Heads and MLP widths are per rank of `tp`, the draft's of `draft_tp` (1 when every rank
        holds it whole; `tp` by default). Raises ShapecheckError naming file, key and remedy,
        also for a pair that cannot work.
        """
        from shapecheck.dims.configs import read_dims

        return read_dims(
            target,
            draft,
            algorithm=algorithm,
            num_steps=num_steps,
            topk=topk,
            num_draft_tokens=num_draft_tokens,
            num_aux=num_aux,
            tp=tp,
            draft_tp=draft_tp,
        )


def _refusal(message: str, name: str, found: object) -> ShapeContractError:
    """What Dims refuses is a broken contract of the dimension, wherever its number was wanted."""
    return ShapeContractError(
        Diagnostic(
            code="SHP201",
            name=NAMES["SHP201"],
            message=message,
            dims=DimPair(expected=name, found=str(found)),
        )
    )


def _rebuilt(cls: type[Dims], fields: dict[str, object]) -> Dims:
    return cls.model_validate(fields)
