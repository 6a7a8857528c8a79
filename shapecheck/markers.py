"""What a shape string cannot say: dtype owners, what values count, phases; inside Annotated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from shapecheck.dims.parse import Axis, parse_shape
from shapecheck.errors import ContractTextError

Model = Literal["target", "draft"]
_VOCABULARIES: Mapping[str, Model] = {"target_vocab": "target", "draft_vocab": "draft"}
# No integer of torch is smaller.
_LEAST = -(2**63)


@dataclass(frozen=True, slots=True)
class DtypeOf:
    """The tensor has the compute dtype of this model, whatever it is in the pair at hand."""

    model: Model


@dataclass(frozen=True, slots=True)
class IdsOf:
    """The values are token ids of this model's vocabulary, or `pad` where there is none."""

    model: Model
    pad: int | None = None


@dataclass(frozen=True, slots=True)
class IndexOf:
    """The values are positions along this axis, or `pad` where there is none."""

    axis: str
    pad: int | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """What `ids` and `indexes` say alike: the axis that the values count along, and the pad."""

    axis: Axis
    ids_of: Model | None
    pad: int | None

    def __str__(self) -> str:
        pad = "" if self.pad is None else f", pad={self.pad}"
        said = f"indexes('{self.axis}'" if self.ids_of is None else f"ids('{self.ids_of}'"
        return f"{said}{pad})"

    def contradiction(self, other: Counted) -> str | None:
        """How two marks of one tensor differ, as the rest of a sentence; None where they agree."""
        if self.ids_of != other.ids_of and self.ids_of is not None and other.ids_of is not None:
            what = "are ids of two models"
        elif self.axis != other.axis:
            what = "count along two axes"
        elif self.pad != other.pad:
            what = "differ in the pad"
        else:
            return None
        return f"{self} and {other} {what}"


# What `dtype` says of a tensor that is marked with ids or indexes as well.
NO_DTYPE_OF_COUNTS = "a model computes in no whole numbers, so dtype(...) contradicts {}"


@dataclass(frozen=True, slots=True)
class InPhase:
    """This alternative of the field holds in the named phase."""

    name: str


def _model(model: str, call: str) -> Model:
    if model == "target" or model == "draft":
        return model
    raise _syntax(f"{call}({model!r}): write {call}('target') or {call}('draft')")


def dtype(model: Model) -> DtypeOf:
    """Mark a tensor whose dtype is the target's or the draft's; raises ContractTextError."""
    return DtypeOf(_model(model, "dtype"))


def ids(model: Model, *, pad: int | None = None) -> IdsOf:
    """Mark token ids of the target's or the draft's vocabulary; raises ContractTextError.

    `pad` is the one value beside the ids that stands for no token: `ids("draft", pad=-1)`.
    """
    return IdsOf(_model(model, "ids"), _pad(pad, "ids"))


def indexes(axis: str, *, pad: int | None = None) -> IndexOf:
    """Mark positions along an axis, written as in a shape; raises ContractTextError.

    `indexes("req_rows")` are rows of that table, `indexes("bs*topk")` rows of a flat batch. `pad`
    is the one value that stands for none.
    """
    if type(axis) is not str or len(axis.split()) != 1:
        raise _syntax(f"indexes({axis!r}): name one axis, for example indexes('bs*topk')")
    return IndexOf(axis, _pad(pad, "indexes"))


def _pad(pad: int | None, call: str) -> int | None:
    if pad is not None and (type(pad) is not int or pad >= 0):
        raise _syntax(f"{call}(pad={pad!r}): a pad is none of the values; write a negative number")
    if pad is not None and pad < _LEAST:
        raise _syntax(f"{call}(pad={pad!r}): no integer tensor holds it; write a number like -1")
    return pad


def phase(name: str) -> InPhase:
    """Mark the alternative of a field that holds in phase `name`; raises ContractTextError."""
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _syntax(f"phase({name!r}): name the phase, for example phase('decode')")
    return InPhase(name)


def counted(mark: IdsOf | IndexOf, more: Collection[str] = ()) -> Counted:
    """What a mark says of values; ContractTextError for an axis that is none (SHP101, SHP102).

    `more` are names that count as declared besides those of the vocabulary.
    """
    text = f"{mark.model}_vocab" if isinstance(mark, IdsOf) else mark.axis
    (axis,) = parse_shape(text, more).axes
    return Counted(axis, _VOCABULARIES.get(text), mark.pad)


def _syntax(what: str) -> ContractTextError:
    return ContractTextError(f"SHP101 contract-syntax: {what}")
