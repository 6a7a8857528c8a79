"""What a shape string cannot say: dtype owners, what values count, phases; inside Annotated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shapecheck.errors import ContractTextError

Model = Literal["target", "draft"]


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
class InPhase:
    """This alternative of the field holds in the named phase."""

    name: str


def _model(model: str, call: str) -> Model:
    if model == "target" or model == "draft":
        return model
    raise ContractTextError(f"{call}({model!r}): write {call}('target') or {call}('draft')")


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
        raise ContractTextError(f"indexes({axis!r}): name one axis, for example indexes('bs*topk')")
    return IndexOf(axis, _pad(pad, "indexes"))


def _pad(pad: int | None, call: str) -> int | None:
    if pad is not None and (type(pad) is not int or pad >= 0):
        raise ContractTextError(
            f"{call}(pad={pad!r}): a pad is none of the values; write a negative number"
        )
    return pad


def phase(name: str) -> InPhase:
    """Mark the alternative of a field that holds in phase `name`; raises ContractTextError."""
    if not name:
        raise ContractTextError("phase(''): name the phase, for example phase('decode')")
    return InPhase(name)
