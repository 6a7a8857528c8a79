"""Hints read into specs, or refused with the place and the remedy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar

import numpy as np
import pytest
from jaxtyping import BFloat16, Float, Int, Int64, Shaped
from torch import Tensor, nn

from shapecheck import ContractTextError, carrier, dtype, ids, indexes, phase
from shapecheck.spec import (
    CarrierSpec,
    HintSpec,
    OptionalSpec,
    PhasedSpec,
    SequenceSpec,
    TensorSpec,
    TupleSpec,
    UnionSpec,
    read_hint,
)


@carrier
@dataclass
class One:
    a: Int64[Tensor, "bs"]


@carrier
@dataclass
class Two:
    a: Int64[Tensor, "bs topk"]


@dataclass
class Unmarked:
    late: "Missing"  # as under TYPE_CHECKING
    a: 'Int64[Tensor, "bs"] | None' = None


class Named(NamedTuple):
    a: list[Int64[Tensor, "bs"]]


class Typed(TypedDict):
    a: Int64[Tensor, "bs"]


def read(hint: object) -> object:
    return read_hint(hint, "Worker.step(x)")


def test_a_tensor() -> None:
    spec = read(Int64[Tensor, "bs topk*num_steps"])
    assert isinstance(spec, TensorSpec)
    assert (spec.cls, spec.kind, spec.dtypes) == (Tensor, "Int64", ("int64",))
    assert str(spec) == "Int64[bs, num_steps*topk]"


def test_dtypes_are_those_of_jaxtyping() -> None:
    assert read(BFloat16[Tensor, "bs"]).dtypes == ("bfloat16",)
    assert {"int32", "int64"} < set(read(Int[Tensor, "bs"]).dtypes)
    assert read(Shaped[Tensor, "bs"]).dtypes is None
    assert read(Float[nn.Parameter, "bs"]).cls is nn.Parameter


def test_markers() -> None:
    marked = read(Annotated[Float[Tensor, "bs"], dtype("draft"), "for readers"])
    assert marked.dtype_of == "draft"
    assert str(marked) == "draft dtype[bs]"
    assert read(Annotated[Int64[Tensor, "bs"], ids("target")]).ids_of == "target"
    marked = read(Annotated[Int64[Tensor, "bs"], indexes("bs*topk", pad=-1)])
    assert (str(marked.indexes), marked.pad, marked.ids_of) == ("bs*topk", -1, None)
    vocabulary = read(Annotated[Int64[Tensor, "bs"], indexes("draft_vocab")])
    assert vocabulary == read(Annotated[Int64[Tensor, "bs"], ids("draft")])
    inside = read(Annotated[Float[Tensor, "bs"] | None, dtype("target")])
    assert isinstance(inside, OptionalSpec)
    assert inside.item.dtype_of == "target"


TOKENS, CHILDREN = ids("target"), indexes("bs*topk")
MARKS = {
    "ids of two models": (TOKENS, ids("draft", pad=-1), "are ids of two models"),
    "ids and positions": (TOKENS, CHILDREN, "count along two axes"),
    "positions along two axes": (CHILDREN, indexes("bs"), "count along two axes"),
    "ids with and without a pad": (TOKENS, ids("target", pad=-1), "differ in the pad"),
    "two pads": (indexes("bs", pad=-1), indexes("bs", pad=-2), "differ in the pad"),
}


@pytest.mark.parametrize("name", MARKS)
def test_two_marks_that_contradict_each_other_are_refused_in_either_order(name: str) -> None:
    one, other, what = MARKS[name]
    for first, second in ((one, other), (other, one)):
        with pytest.raises(ContractTextError, match=what) as caught:
            read(Annotated[Annotated[Int64[Tensor, "bs"], first] | None, second])
        assert str(caught.value).endswith("keep the one mark that is true")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TOKENS, TOKENS),
        (TOKENS, indexes("target_vocab")),
        (CHILDREN, indexes("topk*bs")),
        (indexes("bs", pad=-1), indexes("bs", pad=-1)),
    ],
)
def test_two_marks_that_say_the_same_are_one(one: object, other: object) -> None:
    both = read(Annotated[Int64[Tensor, "bs"], one, other])
    assert both == read(Annotated[Int64[Tensor, "bs"], one])


@pytest.mark.parametrize(
    "hint",
    [Int64[Tensor, "bs"] | None, Optional[Int64[Tensor, "bs"]]],  # noqa: UP045
)
def test_optional(hint: object) -> None:
    assert read(hint) == OptionalSpec(item=read(Int64[Tensor, "bs"]))


def test_carriers_and_containers() -> None:
    assert read(One) == CarrierSpec(cls=One)
    assert read(One | Two | None) == OptionalSpec(
        item=UnionSpec(items=(CarrierSpec(cls=One), CarrierSpec(cls=Two)))
    )
    assert read(list[One]) == SequenceSpec(container=list, item=CarrierSpec(cls=One))
    assert read(tuple[One, ...]) == SequenceSpec(container=tuple, item=CarrierSpec(cls=One))
    assert read(Sequence[One]).container is Sequence
    assert read(tuple[One, int]) == TupleSpec(items=(CarrierSpec(cls=One), HintSpec(hint=int)))


def test_phases() -> None:
    spec = read(
        Annotated[Float[Tensor, "bs target_hidden"], phase("extend")]
        | Annotated[None, phase("decode")]
    )
    assert isinstance(spec, PhasedSpec)
    assert spec.phases() == ("extend", "decode")
    assert isinstance(spec.in_phase("extend"), TensorSpec)
    assert spec.in_phase("decode") == HintSpec(hint=type(None))
    assert spec.in_phase("verify") is None


@pytest.mark.parametrize(
    "hint",
    [
        int,
        str | None,
        list[int],
        dict[str, int],
        Any,
        Tensor,
        Literal["a", 3],
        nn.Module,
        type[One],
    ],
)
def test_hints_without_tensors_are_left_to_beartype(hint: object) -> None:
    assert read(hint) == HintSpec(hint=hint)


def test_a_new_type_is_what_it_stands_for() -> None:
    assert read(NewType("Rows", Int64[Tensor, "bs"])) == read(Int64[Tensor, "bs"])


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (dict[str, One], r"inside dict\[str, .*One\] would not be checked; use a carrier field"),
        (set[One], "would not be checked"),
        (Unmarked, "Unmarked has tensor fields and is no carrier itself"),
        (Named, "Named has tensor fields"),
        (Typed | None, "Typed has tensor fields"),
        (TypeVar("T", bound="One"), "write the class itself as bound"),
        (TypeVar("T", Unmarked, int), "Unmarked has tensor fields"),
        (
            Annotated[Float[Tensor, "bs"], dtype("draft"), dtype("target")],
            r"dtype\(\.\.\.\) says both models",
        ),
        (
            Annotated[Annotated[Int64[Tensor, "bs"], ids("draft")] | None, ids("target")],
            r"ids\('draft'\) and ids\('target'\) are ids of two models",
        ),
        (Iterator[One], "would not be checked"),
        (dict[str, list[Int64[Tensor, "bs"]]], "would not be checked"),
        (Int64[Tensor, "bs"] | int, "only carriers can be told apart in a union"),
        (Int64[Tensor, "bs"] | Int64[Tensor, "bs topk"], "give each alternative its phase"),
        (Float[np.ndarray, "bs"], r"ndarray is not a torch\.Tensor"),
        (Annotated[Int64[Tensor, "bs"], 3], "3 means nothing to a tensor contract"),
        (Annotated[int, ids("draft")], r"ids\(\.\.\.\) marks a tensor"),
        (Annotated[One, dtype("draft")], r"dtype\(\.\.\.\) marks a tensor"),
        (
            Annotated[Int64[Tensor, "bs"], phase("a")]
            | Annotated[Int64[Tensor, "bs topk"], phase("a")],
            "phase 'a' has two alternatives",
        ),
    ],
)
def test_what_could_not_be_checked_is_refused(hint: object, message: str) -> None:
    with pytest.raises(ContractTextError, match=message) as caught:
        read(hint)
    assert str(caught.value).startswith("SHP101 contract-syntax: Worker.step(x): ")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("bs draft_hiden", "SHP102"),
        ("...", "SHP101"),
        ("*bs", "SHP101"),
        ("_ bs", "SHP101"),
        ("bs num_steps + 1", "SHP101"),
        ("draft-hidden", "SHP101"),
        ("self.bs", "SHP101"),
    ],
)
def test_shape_strings_are_refused_with_their_place(text: str, code: str) -> None:
    with pytest.raises(ContractTextError, match=rf"{code} [a-z-]+: Worker\.step\(x\): "):
        read(Float[Tensor, text])


def test_a_carrier_may_not_contain_itself() -> None:
    with pytest.raises(ContractTextError, match="Node contains itself"):

        @carrier
        @dataclass
        class Node:
            a: Int64[Tensor, "bs"]
            next: "Node | None" = None
