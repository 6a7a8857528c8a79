"""What the usual annotation checkers let pass, each case refused here."""

import copy
import dataclasses
import pickle
from dataclasses import dataclass
from typing import Annotated, Self

import pytest
import torch
from jaxtyping import Float, Float32, Int32, Int64
from torch import Tensor

from shapecheck import (
    ContractTextError,
    Dims,
    ShapecheckError,
    ShapeContractError,
    carrier,
    contract,
    dtype,
)

from .conftest import pair_dims


@carrier
@dataclass(slots=True)
class State:
    hidden: Annotated[Float[Tensor, "bs draft_hidden"], dtype("draft")]
    index: Int64[Tensor, "bs topk"]


@carrier
@dataclass(frozen=True)
class Frozen:
    hidden: Float32[Tensor, "bs draft_hidden"]
    index: Int64[Tensor, "bs topk"]


def state(bs: int = 3, width: int = 2048, kind: torch.dtype = torch.float16) -> State:
    return State(torch.zeros(bs, width, dtype=kind), torch.zeros(bs, 2, dtype=torch.int64))


def worker(dims: object):
    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @contract(phase="decode")
        def step(self, state: State) -> None: ...

        @contract(phase="decode")
        def grow(self, index: Int64[Tensor, "bs topk"]) -> Float32[Tensor, "bs draft_hidden"]:
            return torch.zeros(index.shape[0], 4096)

    return Worker()


def test_a_dim_used_once_is_held_to_dims(dims: Dims) -> None:
    @contract
    def step(hidden: Float32[Tensor, "bs draft_hidden"], lens: Int64[Tensor, "bs"], dims: Dims):
        return hidden

    with pytest.raises(ShapeContractError, match="4096 is target_hidden"):
        step(torch.zeros(3, 4096), torch.zeros(3, dtype=torch.int64), dims)


def test_methods_share_a_dim(dims: Dims) -> None:
    made = worker(dims)
    made.step(state())
    with pytest.raises(ShapeContractError, match="return"):
        made.grow(torch.zeros(3, 2, dtype=torch.int64))


def test_mutation_after_init_is_seen(dims: Dims) -> None:
    made, crossing = worker(dims), state()
    made.step(crossing)
    crossing.hidden = torch.zeros(3, 4096, dtype=torch.float16)
    with pytest.raises(ShapeContractError, match=r"argument state\.hidden"):
        made.step(crossing)


def test_construction_is_free_and_the_crossing_is_not(dims: Dims) -> None:
    wrong = state(width=7)
    with pytest.raises(ShapeContractError):
        worker(dims).step(wrong)


@pytest.mark.parametrize(
    "remake",
    [
        lambda it: dataclasses.replace(it, hidden=torch.zeros(3, 4096, dtype=torch.float16)),
        lambda it: _with(copy.copy(it)),
        lambda it: _with(copy.deepcopy(it)),
        lambda it: _with(pickle.loads(pickle.dumps(it))),
    ],
    ids=["replace", "copy", "deepcopy", "pickle"],
)
def test_copies_are_checked_as_originals(dims: Dims, remake) -> None:
    with pytest.raises(ShapeContractError, match="4096 is target_hidden"):
        worker(dims).step(remake(state()))


def _with(crossing: State) -> State:
    crossing.hidden = torch.zeros(3, 4096, dtype=torch.float16)
    return crossing


def test_a_frozen_carrier_is_checked(dims: Dims) -> None:
    @contract
    def step(it: Frozen, dims: Dims) -> None: ...

    index = torch.zeros(3, 2, dtype=torch.int64)
    step(Frozen(torch.zeros(3, 2048), index), dims)
    with pytest.raises(ShapeContractError):
        step(Frozen(torch.zeros(3, 4096), index), dims)


@pytest.mark.parametrize("position", range(5))
def test_every_element_of_a_list_is_checked(dims: Dims, position: int) -> None:
    @contract
    def merge(states: list[State], dims: Dims) -> None: ...

    states = [state() for _ in range(5)]
    merge(states, dims)
    states[position] = state(width=4096)
    with pytest.raises(ShapeContractError, match=rf"states\[{position}\]\.hidden"):
        merge(states, dims)


def test_elements_of_a_list_share_their_names(dims: Dims) -> None:
    @contract
    def merge(parts: list[Int64[Tensor, "bs"]]) -> None: ...

    merge([])
    merge([torch.zeros(3, dtype=torch.int64)] * 2)
    with pytest.raises(ShapeContractError, match=r"parts\[1\]"):
        merge([torch.zeros(3, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)])


def test_tuples_and_varargs_are_checked(dims: Dims) -> None:
    @contract
    def step(
        pair: tuple[Float32[Tensor, "bs topk"], Int64[Tensor, "bs topk"]],
        *more: Int32[Tensor, "bs"],
        dims: Dims,
    ) -> tuple[Int64[Tensor, "bs"], ...]:
        return (torch.zeros(3, dtype=torch.int64),)

    p, i = torch.zeros(3, 2), torch.zeros(3, 2, dtype=torch.int64)
    lens = torch.zeros(3, dtype=torch.int32)
    step((p, i), lens, lens, dims=dims)
    with pytest.raises(ShapeContractError, match=r"pair\[1\]"):
        step((p, p), dims=dims)
    with pytest.raises(ShapeContractError, match=r"expected a tuple of 2 +got a tuple of 3"):
        step((p, i, i), dims=dims)
    with pytest.raises(ShapeContractError, match=r"more\[1\]"):
        step((p, i), lens, lens[:2], dims=dims)


def test_an_idle_carrier_of_the_wrong_width_fails_at_its_producer(dims: Dims) -> None:
    class Producer:
        def __init__(self) -> None:
            self.dims = dims

        @contract(phase="idle")
        def idle(self) -> State:
            return state(bs=0, width=4096)

    with pytest.raises(ShapeContractError, match=r"Producer\.idle \(phase idle\), return\.hidden"):
        Producer().idle()


def merging():
    @carrier
    @dataclass
    class Batch:
        rows: Int64[Tensor, "req_rows"]
        hidden: Annotated[Float[Tensor, "dp_ranks draft_hidden"], dtype("draft")]

        @contract(phase="decode")
        def merge(self, other: Self) -> None: ...

        @classmethod
        def of(cls, width: int, kind: torch.dtype = torch.float16, rows: int = 4) -> Self:
            return cls(torch.zeros(rows, dtype=torch.int64), torch.zeros(2, width, dtype=kind))

    return Batch


def test_merge_without_dims_holds_both_sides_to_one_another() -> None:
    batch = merging()
    batch.of(2048).merge(batch.of(2048))
    with pytest.raises(ShapeContractError, match=r"argument other\.hidden") as caught:
        batch.of(2048).merge(batch.of(4096))
    assert "no Dims was in reach, so draft_hidden was bound by this call alone" in str(caught.value)


def test_merge_without_dims_holds_the_models_dtype() -> None:
    batch = merging()
    with pytest.raises(ShapeContractError, match="the draft's dtype is float16, got float32"):
        batch.of(2048).merge(batch.of(2048, torch.float32))


def test_a_dims_name_used_once_without_dims_is_refused() -> None:
    class Table:
        @contract
        def look_up(self, index: Int64[Tensor, "bs topk"], lens: Int64[Tensor, "bs"]) -> None: ...

    with pytest.raises(ContractTextError, match=r"SHP103.*'topk' occurs only in argument index"):
        Table().look_up(torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3, dtype=torch.int64))


def test_two_dims_in_one_process_do_not_mix(dims: Dims) -> None:
    one, two = worker(dims), worker(pair_dims(target=2048, draft=4096))
    for _ in range(3):
        one.step(state(width=2048))
        two.step(state(width=4096))
        with pytest.raises(ShapeContractError):
            one.step(state(width=4096))
        with pytest.raises(ShapeContractError):
            two.step(state(width=2048))


def test_dims_replaced_on_a_living_worker_count_at_once(dims: Dims) -> None:
    made = worker(dims)
    made.step(state(width=2048))
    made.dims = pair_dims(draft=512)
    made.step(state(width=512))
    with pytest.raises(ShapeContractError):
        made.step(state(width=2048))


def test_equal_numbers_are_not_seen_at_run_time() -> None:
    """A limit, as documented: two names with one number cannot be told apart by shape."""
    made = worker(pair_dims(target=2048, draft=2048))
    assert made.step(state(width=2048)) is None


def test_a_symbolic_axis_introduces_one_unknown_by_exact_division(dims: Dims) -> None:
    @contract
    def verify(
        ids: Int64[Tensor, "bs*num_draft_tokens"], lens: Int32[Tensor, "bs"], dims: Dims
    ) -> Int64[Tensor, "bs num_draft_tokens-1"]:
        return torch.zeros(3, 6, dtype=torch.int64)

    verify(torch.zeros(21, dtype=torch.int64), torch.zeros(3, dtype=torch.int32), dims)
    with pytest.raises(ShapeContractError, match="is 21"):
        verify(torch.zeros(22, dtype=torch.int64), torch.zeros(3, dtype=torch.int32), dims)

    @contract
    def flat(
        ids: Int64[Tensor, "bs*num_draft_tokens"], dims: Dims
    ) -> Int64[Tensor, "bs*num_draft_tokens"]:
        return ids

    with pytest.raises(ShapeContractError, match="no whole solution for 22"):
        flat(torch.zeros(22, dtype=torch.int64), dims)


def test_an_axis_with_two_unknowns_is_refused(dims: Dims) -> None:
    @contract
    def step(a: Int64[Tensor, "bs*tokens"], dims: Dims) -> Int64[Tensor, "bs*tokens"]:
        return a

    with pytest.raises(ContractTextError, match=r"SHP101.*cannot be solved for bs, tokens"):
        step(torch.zeros(6, dtype=torch.int64), dims)


def test_names_bound_by_optional_fields_still_hold_together(dims: Dims) -> None:
    @carrier
    @dataclass
    class Loose:
        first: Int64[Tensor, "bs"] | None = None
        second: Int32[Tensor, "bs topk"] | None = None

    @contract
    def step(it: Loose, dims: Dims) -> Int64[Tensor, "bs"] | None:
        return it.first

    step(Loose(), dims)
    step(Loose(second=torch.zeros(3, 2, dtype=torch.int32)), dims)
    with pytest.raises(ShapeContractError, match=r"it\.second"):
        step(Loose(torch.zeros(4, dtype=torch.int64), torch.zeros(3, 2, dtype=torch.int32)), dims)


def test_a_required_field_of_an_absent_width_is_refused(dims: Dims) -> None:
    @contract
    def step(
        a: Float32[Tensor, "bs recurrent_hidden"], b: Int64[Tensor, "bs"], dims: Dims
    ) -> None: ...

    with pytest.raises(ContractTextError, match=r"a width this pair does not have; annotate"):
        step(torch.zeros(3, 4), torch.zeros(3, dtype=torch.int64), dims)


def test_an_optional_carrier_of_an_absent_width_must_be_none(dims: Dims) -> None:
    @carrier
    @dataclass
    class Recurrent:
        hidden: Float32[Tensor, "bs recurrent_hidden"]

    @contract
    def step(lens: Int64[Tensor, "bs"], it: Recurrent | None, dims: Dims) -> None: ...

    lens = torch.zeros(3, dtype=torch.int64)
    step(lens, None, dims)
    with pytest.raises(ShapeContractError, match="recurrent_hidden has no number") as caught:
        step(lens, Recurrent(torch.zeros(3, 4)), dims)
    assert "expected None      got " in str(caught.value)


def test_the_field_that_bound_a_name_is_not_guessed(dims: Dims) -> None:
    @carrier
    @dataclass
    class Loose:
        first: Int64[Tensor, "bs"] | None = None
        second: Int64[Tensor, "bs"] | None = None
        third: Int64[Tensor, "bs"] | None = None

    three, four = torch.zeros(3, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    with pytest.raises(
        ShapeContractError, match=r"bs is 3 \(bound by carrier\.first or carrier\.second\)"
    ):
        Loose(None, three, four).check(dims)


def test_a_name_without_a_number_says_how_to_give_one(dims: Dims) -> None:
    @contract
    def step(slots: Int64[Tensor, "bs max_context"], lens: Int64[Tensor, "bs"], dims: Dims): ...

    with pytest.raises(ShapecheckError, match=r"with_sizes\(max_context="):
        step(torch.zeros(3, 4, dtype=torch.int64), torch.zeros(3, dtype=torch.int64), dims)


def test_nested_carriers_and_unions_are_opened(dims: Dims) -> None:
    @carrier
    @dataclass
    class Outer:
        inner: State
        other: State | Frozen | None = None

    @contract
    def step(it: Outer, dims: Dims) -> None: ...

    index = torch.zeros(3, 2, dtype=torch.int64)
    step(Outer(state(), Frozen(torch.zeros(3, 2048), index)), dims)
    with pytest.raises(ShapeContractError, match=r"argument it\.inner\.hidden"):
        step(Outer(state(width=4096)), dims)
    with pytest.raises(ShapeContractError, match=r"argument it\.other\.hidden"):
        step(Outer(state(), Frozen(torch.zeros(3, 4096), index)), dims)
    with pytest.raises(ShapeContractError, match=r"expected State or Frozen +got int"):
        step(Outer(state(), 3), dims)  # type: ignore[arg-type]  # on purpose


def test_check_on_demand(dims: Dims) -> None:
    state().check(dims)
    with pytest.raises(ShapeContractError, match=r"State\.check, carrier\.hidden"):
        state(width=4096).check(dims)


def test_a_phased_field_needs_a_phase(dims: Dims) -> None:
    from shapecheck import phase

    @carrier
    @dataclass
    class Info:
        hidden: (
            Annotated[Float32[Tensor, "bs target_hidden"], phase("extend")]
            | Annotated[Float32[Tensor, "bs draft_hidden"], phase("decode")]
        )
        lens: Int64[Tensor, "bs"]

    with pytest.raises(ContractTextError, match=r"differs per phase .extend, decode."):

        @contract
        def step(it: Info, dims: Dims) -> None: ...

    with pytest.raises(ContractTextError, match="phase 'verify' has no alternative"):

        @contract(phase="verify")
        def verify(it: Info, dims: Dims) -> None: ...
