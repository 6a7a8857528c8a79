"""Relations beyond sizes run at full, and only there."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import torch
from jaxtyping import Float32, Int64, Shaped
from torch import Tensor

from shapecheck import (
    ContractTextError,
    Dims,
    ShapeContractError,
    carrier,
    contract,
    ids,
    invariant,
)


@carrier
@dataclass
class Verify:
    positions: Int64[Tensor, "bs topk"]
    lens: Int64[Tensor, "bs"]
    tokens: Annotated[Int64[Tensor, "bs topk"], ids("draft")]

    @invariant
    def positions_follow_lens(self) -> Tensor:
        """Positions start at the committed length."""
        return self.positions[:, 0] == self.lens

    @invariant
    def fits(self, dims: Dims) -> bool:
        """No position is beyond the draft's vocabulary of this test."""
        return bool((self.positions < dims["draft_vocab"]).all())


def crossing(position: int = 5, token: int = 7) -> Verify:
    return Verify(torch.full((3, 2), position), torch.full((3,), 5), torch.full((3, 2), token))


def verifying(dims: Dims):
    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @contract(phase="verify")
        def verify(self, it: Verify) -> Int64[Tensor, "bs"]:
            return it.lens + it.tokens[:, 0]

        @invariant(verify)
        def lengths_grow(it: Verify, result: Tensor) -> Tensor:
            """Every request accepts at least one token."""
            return result > it.lens

    return Worker()


def test_a_carriers_invariant_holds_where_it_crosses(level, dims: Dims) -> None:
    level("full")
    worker = verifying(dims)
    worker.verify(crossing())
    with pytest.raises(ShapeContractError) as caught:
        worker.verify(crossing(position=6))
    assert str(caught.value) == (
        "SHP206 Worker.verify (phase verify), argument it\n"
        "  invariant Verify.positions_follow_lens is false\n"
        "  Positions start at the committed length."
    )


def test_an_invariant_may_ask_for_dims(level, dims: Dims) -> None:
    level("full")
    wide = crossing(position=100)
    wide.lens = torch.full((3,), 100)
    with pytest.raises(ShapeContractError, match=r"Verify\.fits"):
        verifying(dims).verify(wide)


def test_a_contracts_invariant_sees_arguments_and_result(level, dims: Dims) -> None:
    level("full")
    with pytest.raises(ShapeContractError, match=r"lengths_grow is false\n.*at least one token"):
        verifying(dims).verify(crossing(token=0))


@pytest.mark.parametrize("token", [-1, 100])
def test_ids_outside_their_vocabulary(level, dims: Dims, token: int) -> None:
    level("full")
    with pytest.raises(ShapeContractError) as caught:
        verifying(dims).verify(crossing(token=token))
    assert caught.value.diagnostic.code == "SHP305"
    assert f"expected ids in [0, draft_vocab=100)      got {token}\n" in str(caught.value)


def test_a_pad_is_no_id_and_the_only_other_value(level, dims: Dims) -> None:
    level("full")

    @contract
    def step(it: Annotated[Int64[Tensor, "bs"], ids("draft", pad=-1)],
             bs: Int64[Tensor, "bs"], dims: Dims) -> None: ...  # fmt: skip

    step(torch.tensor([-1, 99]), torch.zeros(2, dtype=torch.int64), dims)
    for wrong in (-2, 100):
        with pytest.raises(ShapeContractError, match=rf"(?s)SHP305.*or are -1      got {wrong}"):
            step(torch.tensor([-1, wrong]), torch.zeros(2, dtype=torch.int64), dims)


@pytest.mark.parametrize("pad", [0, 7, True])
def test_a_pad_that_could_be_an_id_is_refused(pad: int) -> None:
    with pytest.raises(ContractTextError, match="write a negative number"):
        ids("draft", pad=pad)


def test_an_idle_carrier_has_no_ids_to_judge(level, dims: Dims) -> None:
    level("full")
    none = torch.zeros(0, 2, dtype=torch.int64)
    assert verifying(dims).verify(Verify(none, none[:, 0], none)).shape == (0,)


@pytest.mark.parametrize("name", ["off", "warn", "strict"])
def test_nothing_is_read_below_full(level, dims: Dims, name: str) -> None:
    level(name)
    assert verifying(dims).verify(crossing(position=6, token=500)).tolist() == [505] * 3


def test_check_on_demand_includes_invariants(dims: Dims) -> None:
    with pytest.raises(ShapeContractError, match="positions_follow_lens"):
        crossing(position=6).check(dims)


def test_invariants_are_inherited(dims: Dims) -> None:
    @carrier
    @dataclass
    class More(Verify):
        scale: Float32[Tensor, "bs"] | None = None

    with pytest.raises(ShapeContractError, match="positions_follow_lens"):
        More(**vars(crossing(position=6))).check(dims)


def test_what_an_invariant_may_not_be(dims: Dims) -> None:
    with pytest.raises(ContractTextError, match=r"takes \(self\) or \(self, dims\)"):

        @invariant
        def three(a: int, b: int, c: int) -> bool: ...

    @contract
    def step(a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> None: ...

    with pytest.raises(ContractTextError, match="'c' is no parameter of"):

        @invariant(step)
        def wrong(c: Tensor) -> bool: ...

    @carrier
    @dataclass
    class Talks:
        a: Int64[Tensor, "bs"]

        @invariant
        def says(self) -> str:
            return "fine"

    with pytest.raises(ContractTextError, match="returned str; return a bool or a bool tensor"):
        Talks(torch.zeros(3, dtype=torch.int64)).check(dims)


def test_values_without_data_of_their_own_are_not_read(level, dims: Dims) -> None:
    level("full")
    step = verifying(dims).verify

    def inside(lens: Tensor) -> Tensor:
        wide = lens[:, None].expand(3, 2)
        return step(Verify(wide, lens, wide))

    assert torch.vmap(inside)(torch.full((4, 3), 5)).shape == (4, 3)
    with torch.device("meta"):
        empty = torch.empty(3, 2).long()
        assert step(Verify(empty, empty[:, 0], empty)).shape == (3,)


@pytest.mark.parametrize("kind", [torch.uint8, torch.uint16, torch.uint32, torch.int32])
def test_ids_of_every_whole_dtype_are_read(level, dims: Dims, kind: torch.dtype) -> None:
    level("full")

    @contract
    def step(it: Annotated[Shaped[Tensor, "bs"], ids("draft")], bs: Int64[Tensor, "bs"],
             dims: Dims) -> None: ...  # fmt: skip

    step(torch.full((2,), 99, dtype=kind), torch.zeros(2, dtype=torch.int64), dims)
    with pytest.raises(ShapeContractError, match="SHP305"):
        step(torch.full((2,), 100, dtype=kind), torch.zeros(2, dtype=torch.int64), dims)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_full_stays_out_of_a_capture(level, dims: Dims) -> None:
    level("full")
    step = verifying(dims).verify
    it = Verify(*(part.cuda() for part in vars(crossing()).values()))
    step(it)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held = step(it)
    graph.replay()
    assert held.is_cuda
