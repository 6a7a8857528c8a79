"""What a shape string cannot say: dtype owners, id domains and phases, inside Annotated."""

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
    if pad is not None and (type(pad) is not int or pad >= 0):
        raise ContractTextError(f"ids(pad={pad!r}): a pad is no id; write a negative number")
    return IdsOf(_model(model, "ids"), pad)


def phase(name: str) -> InPhase:
    """Mark the alternative of a field that holds in phase `name`; raises ContractTextError."""
    if not name:
        raise ContractTextError("phase(''): name the phase, for example phase('decode')")
    return InPhase(name)
