"""Carriers for tests, and Dims whose names cannot be mistaken for one another."""

from dataclasses import InitVar, dataclass, field
from itertools import combinations
from typing import Annotated

import pytest
import torch
from jaxtyping import (
    Bool,
    Float,
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    Num,
    Shaped,
    UInt,
    UInt8,
    UInt64,
)
from torch import Tensor

from shapecheck import Dims, ShapecheckError, carrier, contract, dtype, ids, indexes, phase
from shapecheck.dims import Owner, Size
from shapecheck.dims.vocabulary import _BUILT_IN
from shapecheck.testing import distinct_dims, make, make_arguments


@carrier
@dataclass(slots=True)
class Inner:
    mask: Bool[Tensor, "bs num_draft_tokens"]


@carrier
@dataclass(slots=True)
class State:
    hidden: Annotated[Float[Tensor, "bs*num_draft_tokens target_hidden"], dtype("target")]
    index: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
    lens: Int32[Tensor, "bs"]
    flat: Int64[Tensor, "tokens"]
    inner: Inner
    parts: list[Inner]
    pair: tuple[Inner, int]
    width: (
        Annotated[Float32[Tensor, "bs target_hidden"], phase("extend")]
        | Annotated[Float32[Tensor, "bs draft_hidden"], phase("decode")]
    )
    recurrent: Float32[Tensor, "bs recurrent_hidden"] | None = None
    count: int = 3
    names: list[str] = field(default_factory=list)


@pytest.fixture(params=[0, 1], ids=["wider", "narrower"])
def dims(request: pytest.FixtureRequest) -> Dims:
    return distinct_dims()[request.param]


@pytest.mark.parametrize("bs", [0, 1, 3])
@pytest.mark.parametrize("name", ["extend", "decode"])
def test_what_is_made_keeps_its_contract(dims: Dims, bs: int, name: str) -> None:
    made = make(State, dims, bs, tokens=5, phase=name)
    made.check(dims, phase=name)
    assert made.hidden.shape == (bs * 11, dims["target_hidden"])
    assert made.hidden.dtype is torch.bfloat16
    assert (made.count, len(made.parts)) == (3, 2)
    assert made.width.shape[1] == dims["target_hidden" if name == "extend" else "draft_hidden"]


def test_the_same_arguments_make_the_same_values(dims: Dims) -> None:
    one, two = (make(State, dims, tokens=5, phase="extend") for _ in range(2))
    assert torch.equal(one.hidden, two.hidden)
    assert torch.equal(one.index, two.index)
    other = make(State, dims, tokens=5, phase="extend", seed=1)
    assert not torch.equal(one.hidden, other.hidden)


def test_a_tensor_the_pair_does_not_have_is_none(dims: Dims) -> None:
    nothing = Size(value=None, owner=Owner.DRAFT, origin="no recurrence")
    without = Dims(
        sizes={**dims.sizes, "recurrent_hidden": nothing},
        target_dtype="bfloat16",
        draft_dtype="float16",
    )
    assert make(State, without, tokens=5, phase="extend").recurrent is None
    assert make(State, dims, tokens=5, phase="extend").recurrent is not None
    chosen = make(State, dims, tokens=5, phase="extend", absent=["recurrent"])
    assert chosen.recurrent is None


def test_fields_without_tensors_are_given(dims: Dims) -> None:
    made = make(State, dims, tokens=5, phase="extend", fields={"count": 9})
    assert made.count == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "has tokens rows; give tokens="),
        ({"tokens": 5, "fields": {"cuont": 9}}, "cuont"),
        ({"tokens": 5, "absent": ["hidden"]}, "`absent` names Optional ones"),
    ],
)
def test_what_must_be_given_is_said(dims: Dims, arguments: dict, message: str) -> None:
    with pytest.raises(ShapecheckError, match=message):
        make(State, dims, phase="extend", **arguments)


def _marked(hint: object, mark: object) -> type:
    @carrier
    @dataclass
    class Marked:
        at: Annotated[hint, mark]
        flat: Int64[Tensor, "tokens"]

    return Marked


NARROW = {"int8": Int8, "uint8": UInt8, "int16": Int16, "int32": Int32, "uint64": UInt64}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("tokens", [1, 127, 129, 300])
def test_an_index_of_a_narrow_dtype_stays_within_it_and_its_axis(
    name: str, tokens: int, dims: Dims
) -> None:
    marked = _marked(NARROW[name][Tensor, "bs"], indexes("tokens"))
    made = make(marked, dims, 200, tokens=tokens)
    made.check(dims)
    assert made.at.dtype is getattr(torch, name)
    high = min(tokens, torch.iinfo(made.at.dtype).max + 1)
    assert 0 <= made.at.long().min() <= made.at.long().max() < high
    assert len(made.at.long().unique()) > high // 4


def test_ids_of_a_narrow_dtype_are_made(dims: Dims) -> None:
    made = make(_marked(UInt8[Tensor, "bs"], ids("draft")), dims, 50, tokens=2)
    made.check(dims)
    assert made.at.dtype is torch.uint8


@pytest.mark.parametrize("kind", [Shaped, Num, Integer, UInt])
def test_a_marked_tensor_of_several_dtypes_is_made_of_whole_numbers(kind, dims) -> None:
    made = make(_marked(kind[Tensor, "bs"], indexes("tokens")), dims, 9, tokens=300)
    made.check(dims)
    assert not made.at.dtype.is_floating_point
    assert made.at.dtype is not torch.bool


@pytest.mark.parametrize("axis", ["tokens", "tokens-1", "bs*tokens"])
def test_an_index_of_an_empty_axis_is_all_pads(axis: str, dims: Dims) -> None:
    made = make(_marked(Int32[Tensor, "bs"], indexes(axis, pad=-2)), dims, 4, tokens=0)
    made.check(dims)
    assert made.at.tolist() == [-2] * 4


@pytest.mark.parametrize(
    "mark",
    [(Int64, indexes("tokens")), (Int64, indexes("tokens-1")), (UInt8, indexes("tokens", pad=-1))],
)
def test_an_index_of_an_empty_axis_without_a_pad_is_refused(mark, dims: Dims) -> None:
    kind, along = mark
    marked = _marked(kind[Tensor, "bs"], along)
    with pytest.raises(ShapecheckError, match=r"at holds positions along tokens.*mark a pad"):
        make(marked, dims, 4, tokens=0)
    none = make(marked, dims, 0, tokens=0)
    none.check(dims)
    assert none.at.numel() == 0


def test_a_size_below_0_is_refused(dims: Dims) -> None:
    with pytest.raises(ShapecheckError, match=r"Marked.at is \[tokens-1=-1\]; give sizes that"):
        make(_marked(Int64[Tensor, "tokens-1"], "for readers"), dims, tokens=0)


def test_distinct_dims_cover_the_vocabulary_and_do_not_coincide() -> None:
    wider, narrower = distinct_dims()
    assert wider["draft_hidden"] > wider["target_hidden"]
    assert narrower["draft_hidden"] < narrower["target_hidden"]
    for each in (wider, narrower):
        # Those shipped: what other tests or an engine declared is theirs to size.
        assert {dim.name for dim in _BUILT_IN if not dim.per_call} <= set(each.names())
        free = [name for name in each.names() if each.origin(name) == "distinct_dims"]
        assert all(_prime(each[name]) for name in free)
        same = [pair for pair in combinations(each.names(), 2) if each[pair[0]] == each[pair[1]]]
        assert same == [("draft_hidden", "recurrent_hidden")]
        assert each["extend_hidden"] == each["num_aux"] * each["target_hidden"]


def _prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, number))


@pytest.mark.parametrize("sizes", [{"tokns": 3}, {"tokens": -1}, {"bs": -3}])
def test_a_size_that_nothing_could_have_is_refused(dims: Dims, sizes: dict[str, int]) -> None:
    with pytest.raises(ShapecheckError, match=r"did you mean tokens|give a size of 0 or more"):
        make(Inner, dims, **sizes)


def test_an_init_var_comes_from_fields(dims: Dims) -> None:
    @carrier
    @dataclass
    class Late:
        rows: Int64[Tensor, "bs"]
        count: InitVar[int]
        other: InitVar[int] = 2

    assert make(Late, dims, fields={"count": 4}).rows.shape == (3,)
    with pytest.raises(ShapecheckError, match=r"no blank value for Late\.count; give fields="):
        make(Late, dims)


@contract
def _paired(rows: Int64[Tensor, "bs"], lens: Int64[Tensor, "bs"]) -> None: ...


def test_names_that_a_function_does_not_have_are_refused(dims: Dims) -> None:
    with pytest.raises(ShapecheckError, match="no parameter is called row; correct"):
        make_arguments(_paired, dims, given={"row": 1})
    with pytest.raises(ShapecheckError, match="nosuch is no name of the vocabulary"):
        make_arguments(_paired, dims, nosuch=3)
