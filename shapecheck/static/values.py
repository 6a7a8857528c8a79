"""Abstract values: sizes, tensors, objects and guarded alternatives of them.

Values are made by the million and never changed; they are not declared frozen because that makes
each of them three times as dear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shapecheck.diagnostics.model import Span
from shapecheck.static.guards import Guard
from shapecheck.static.symbols import Ownership, SizePoly, Step

if TYPE_CHECKING:
    from shapecheck.static.index import ClassFacts, FunctionFacts
    from shapecheck.static.units import Birth, Giver

MAX_ALTERNATIVES = 6


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
    norm: bool = False


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
    `pending` runs the constructor, which waits until a field is asked for; `birth` is that run.
    `recall` puts what an earlier run knew of a field in its cell, `givers` are what gave a field
    something.
    """

    cls: ClassFacts | None
    owned: Ownership | None
    site: Span | None
    entry: bool = False
    label: str = ""
    settled: dict[str, Value] = field(default_factory=dict[str, "Value"])
    children: dict[str, Value] = field(default_factory=dict[str, "Value"])
    pending: Callable[[], None] | None = None
    recall: Callable[[str], None] | None = None
    birth: Birth | None = None
    givers: dict[str, Giver | dict[Giver, Value | None]] = field(
        default_factory=dict[str, "Giver | dict[Giver, Value | None]"]
    )


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


def telling(value: Value) -> int:
    """2 where a value says how large something is or whose, 1 where its fields may, else 0."""
    if isinstance(value, Union):
        return max([telling(one.value) for one in value.alternatives], default=0)
    if isinstance(value, Sequence):
        return max(map(telling, value.items), default=0)
    if isinstance(value, (Items, Mapping)):
        return max(map(telling, value.choices), default=0)
    if isinstance(value, Partial):
        return max(map(telling, value.arguments), default=0)
    if isinstance(value, Instance):
        made_here = value.ref.site is not None
        return 2 if value.ref.owned is not None else int(made_here)
    return 2 if _says_size(value) else 0


def _says_size(value: Plain) -> bool:
    if isinstance(value, Unknown):
        return value.owned is not None
    if isinstance(value, Size):
        return bool(value.poly.symbols())
    if isinstance(value, DType):
        return bool(value.owner)
    if isinstance(value, Tensor):
        return value != Tensor(dtype=value.dtype)
    return isinstance(value, (Shape, Layer))


def plain_values(value: Value) -> Iterable[Plain]:
    """Every possible plain value."""
    if not isinstance(value, Union):
        return (value,)
    return [alternative.value for alternative in value.alternatives]
