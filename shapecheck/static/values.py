"""Abstract values: sizes, tensors, objects and guarded alternatives of them.

Values are made by the million and never changed; they are not declared frozen because that makes
each of them three times as dear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from shapecheck.diagnostics.model import Span
from shapecheck.static.guards import Guard
from shapecheck.static.symbols import Ownership, SizePoly, Step

if TYPE_CHECKING:
    from shapecheck.static.index import ClassFacts, FunctionFacts
    from shapecheck.static.units import Basis

MAX_ALTERNATIVES = 6
_MAX_COMPARED = 64  # comparing each with each is quadratic in the returns of a function


@dataclass(unsafe_hash=True, slots=True)
class Unknown:
    """Nothing is known but perhaps whose it is; it never conflicts with anything."""

    owned: Ownership | None = None


@dataclass(unsafe_hash=True, slots=True)
class Const:
    """A literal: None, a bool, a number or a text."""

    value: object


@dataclass(unsafe_hash=True, slots=True)
class Size:
    """An integer as a polynomial over owned symbols, with the steps it took so far."""

    poly: SizePoly
    trail: tuple[Step, ...] = field(default=(), compare=False)


@dataclass(unsafe_hash=True, slots=True)
class DType:
    """An element type: a literal name, or the dtype of one model's config."""

    name: str
    owner: str = ""
    trail: tuple[Step, ...] = field(default=(), compare=False)


Axis = Size | None


@dataclass(unsafe_hash=True, slots=True)
class Tensor:
    """A tensor: its axes, or only the last one where the rank is not known.

    `ids` is the vocabulary that its values index: they were picked along that axis. `total` is the
    last of its values where they are offsets: `arange(0, n + 1, step=w)` ends at n.
    """

    dims: tuple[Axis, ...] | None = None
    last: Axis = None
    dtype: DType | None = None
    owned: Ownership | None = None
    ids: Axis = None
    total: Axis = None

    @property
    def has_no_rows(self) -> bool:
        """Whether it is a placeholder: its first axis is literally 0."""
        rows = self.dims[0] if self.dims else None
        return rows is not None and rows.poly.as_int() == 0

    def axis(self, index: int) -> Axis:
        """The axis at `index` (negative from the end), or None where it is not known."""
        if self.dims is not None:
            inside = -len(self.dims) <= index < len(self.dims)
            return self.dims[index] if inside else None
        return self.last if index == -1 else None


@dataclass(unsafe_hash=True, slots=True)
class Shape:
    """`x.shape`, which knows as much as the tensor does."""

    tensor: Tensor


@dataclass(unsafe_hash=True, slots=True)
class Layer:
    """A module of torch.nn that maps the last axis: what it takes, and what it gives."""

    takes: Axis
    gives: Axis
    lookup: bool = False


@dataclass(unsafe_hash=True, slots=True)
class Sequence:
    """A tuple or list of known items."""

    items: tuple[Value, ...]


@dataclass(unsafe_hash=True, slots=True)
class Items:
    """A list of unknown length: what was seen to be put in it, in no order."""

    choices: tuple[Value, ...]


@dataclass(unsafe_hash=True, slots=True)
class Mapping:
    """A dict: the possible values, and the literal keys of a display that has no others."""

    choices: tuple[Value, ...]
    keys: tuple[object, ...] | None = None

    def items(self) -> dict[object, Value] | None:
        """The entries by key, or None where a key is not known."""
        return None if self.keys is None else dict(zip(self.keys, self.choices, strict=True))


@dataclass(eq=False, slots=True)
class ObjectRef:
    """The identity of one abstract object; `settled` is its cell of every field ever stored.

    `entry` objects come from outside the analysed call (parameters and what hangs off them);
    `pending` runs the constructor, which waits until a field is asked for; `basis` is what the
    constructor then rested on.
    """

    cls: ClassFacts | None
    owned: Ownership | None
    site: Span | None
    entry: bool = False
    label: str = ""
    settled: dict[str, Value] = field(default_factory=dict[str, "Value"])
    children: dict[str, Value] = field(default_factory=dict[str, "Value"])
    pending: Callable[[], None] | None = None
    basis: Basis | None = None


@dataclass(unsafe_hash=True, slots=True)
class Instance:
    """A reference to one abstract object."""

    ref: ObjectRef


@dataclass(unsafe_hash=True, slots=True)
class ClassValue:
    """A class of the project, as a value."""

    cls: ClassFacts


@dataclass(unsafe_hash=True, slots=True)
class FunctionValue:
    """A function of the project, bound to a receiver or not; `scope` holds a closure's names."""

    function: FunctionFacts
    receiver: Value | None = None
    scope: dict[str, Value] | None = field(default=None, compare=False, hash=False)


@dataclass(unsafe_hash=True, slots=True)
class External:
    """A name outside the project (`torch.zeros`), or a bound method of a value (`x.view`)."""

    name: str
    receiver: Value | None = None


@dataclass(unsafe_hash=True, slots=True)
class Partial:
    """`functools.partial`: a callable with its first arguments and some keywords given."""

    callee: Value
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@dataclass(unsafe_hash=True, slots=True)
class ModuleValue:
    """A module of the project, by its dotted name."""

    name: str


@dataclass(unsafe_hash=True, slots=True)
class Alternative:
    """One possible value and the guards it holds under."""

    value: Plain
    guards: tuple[Guard, ...] = ()


@dataclass(unsafe_hash=True, slots=True)
class Union:
    """Up to six guarded alternatives."""

    alternatives: tuple[Alternative, ...]


Plain = (
    Unknown
    | Const
    | Size
    | DType
    | Tensor
    | Shape
    | Layer
    | Sequence
    | Items
    | Mapping
    | Instance
    | ClassValue
    | FunctionValue
    | Partial
    | External
    | ModuleValue
)
Value = Plain | Union

UNKNOWN = Unknown()
NONE = Const(None)


def alternatives(value: Value) -> tuple[Alternative, ...]:
    """The alternatives of any value; a plain one has itself under no guard."""
    return value.alternatives if isinstance(value, Union) else (Alternative(value),)


def plain_values(value: Value) -> Iterable[Plain]:
    """Every possible plain value."""
    if not isinstance(value, Union):
        return (value,)
    return [alternative.value for alternative in value.alternatives]


def union(choices: Iterable[Alternative]) -> Value:
    """The choices as one value: equal ones merged, the six that say most kept."""
    kept: list[Alternative] = []
    for choice in choices:
        for position, known in enumerate(kept):
            merged = _merged(known.value, choice.value)
            if merged is not None:
                shared = tuple(guard for guard in known.guards if guard in choice.guards)
                kept[position] = Alternative(merged, shared)
                break
        else:
            if len(kept) < _MAX_COMPARED:
                kept.append(choice)
    if len(kept) > MAX_ALTERNATIVES:
        telling = sorted(kept, key=lambda one: not _names_owner(one.value))
        kept = [*telling[: MAX_ALTERNATIVES - 1], Alternative(UNKNOWN)]
    if not kept:
        return UNKNOWN
    if len(kept) == 1 and not kept[0].guards:
        return kept[0].value
    return Union(tuple(kept))


def _merged(left: Plain, right: Plain) -> Plain | None:
    """One value for both, when they differ in nothing that a size depends on."""
    if left is right:
        return left
    if type(left) is type(right) and left == right:
        return left
    if isinstance(left, Items) or isinstance(right, Items):
        return _gathered(left, right)
    if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
        return None
    if (left.dims, left.last) != (right.dims, right.last):
        return None
    ids = left.ids if left.ids == right.ids else None
    return Tensor(left.dims, left.last, None, left.owned or right.owned, ids)


def _gathered(left: Plain, right: Plain) -> Plain | None:
    """One list for two of which at least one has an unknown length."""
    choices: dict[Value, None] = {}
    for one in (left, right):
        if not isinstance(one, Sequence | Items):
            return None
        choices.update(dict.fromkeys(one.items if isinstance(one, Sequence) else one.choices))
    return Items(tuple(choices)) if len(choices) <= MAX_ALTERNATIVES else None


def _names_owner(value: Plain) -> bool:
    if isinstance(value, Size):
        return any(symbol.owner for symbol in value.poly.symbols())
    if isinstance(value, Tensor):
        axes = value.dims if value.dims is not None else (value.last,)
        return any(axis is not None and _names_owner(axis) for axis in axes)
    return isinstance(value, Instance)


def join(left: Value, right: Value, guard: Guard | None = None) -> Value:
    """Either value: `left` under the guard, `right` under its negation."""
    if left is right or left == right:
        return left
    ours = (guard,) if guard else ()
    theirs = (guard.negated(),) if guard else ()
    return union(
        [
            *(Alternative(a.value, _and(a.guards, ours)) for a in alternatives(left)),
            *(Alternative(a.value, _and(a.guards, theirs)) for a in alternatives(right)),
        ]
    )


def lift(function: Callable[[Plain], Value], value: Value) -> Value:
    """`function` of every alternative, joined under the alternatives' guards."""
    if not isinstance(value, Union):
        return function(value)
    return union(
        Alternative(result.value, _and(choice.guards, result.guards))
        for choice in value.alternatives
        for result in alternatives(function(choice.value))
    )


def combine(
    function: Callable[[tuple[Plain, ...]], Value],
    *values: Value,
    under: list[Guard] | None = None,
) -> Value:
    """`function` of every combination of alternatives, a dozen at most.

    `under` holds the guards of the path; those of the combination are added while it runs.
    """
    plain = tuple(value for value in values if not isinstance(value, Union))
    if len(plain) == len(values):
        return function(plain)
    results: list[Alternative] = []
    for choices in product(*(alternatives(value) for value in values)):
        guards = tuple(dict.fromkeys(guard for choice in choices for guard in choice.guards))
        if _contradicts((*(under or ()), *guards)):
            continue
        depth = len(under) if under is not None else 0
        if under is not None:
            under.extend(guards)
        result = function(tuple(choice.value for choice in choices))
        if under is not None:
            del under[depth:]
        results.extend(
            Alternative(one.value, tuple(dict.fromkeys((*guards, *one.guards))))
            for one in alternatives(result)
        )
        if len(results) > MAX_ALTERNATIVES * 2:
            break
    return union(results)


def _contradicts(guards: tuple[Guard, ...]) -> bool:
    senses: dict[str, bool] = {}
    return any(senses.setdefault(guard.identity, guard.sense) != guard.sense for guard in guards)


def _and(left: tuple[Guard, ...], right: tuple[Guard, ...]) -> tuple[Guard, ...]:
    if not left or not right:
        return left or right
    return left + tuple(guard for guard in right if guard not in left)


def has_trail(value: Value) -> bool:
    """Whether a value may hold sizes, whose way `with_step` would make longer."""
    return isinstance(value, Union | Size | Tensor | DType)


def with_step(value: Value, step: Step) -> Value:
    """The value with one more station on the way of every size it holds."""

    def extend(plain: Plain) -> Value:
        if isinstance(plain, Size) and plain.poly.symbols():
            return Size(plain.poly, (*plain.trail, step)[-12:])
        if isinstance(plain, DType) and plain.owner:
            return DType(plain.name, plain.owner, (*plain.trail, step)[-12:])
        if isinstance(plain, Tensor):
            return Tensor(
                None if plain.dims is None else tuple(_axis(axis, step) for axis in plain.dims),
                _axis(plain.last, step),
                plain.dtype,
                plain.owned,
                plain.ids,
                _axis(plain.total, step),
            )
        return plain

    return lift(extend, value)


def _axis(axis: Axis, step: Step) -> Axis:
    if axis is None or not axis.poly.symbols():
        return axis
    return Size(axis.poly, (*axis.trail, step)[-12:])
