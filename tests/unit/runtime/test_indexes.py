"""Indices at run time: bounded by the axis that the contract names, at full and only there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
import torch
from jaxtyping import Float32, Int32, Int64, UInt
from torch import Tensor

from shapecheck import (
    ContractTextError,
    Dims,
    ShapeContractError,
    carrier,
    contract,
    ids,
    indexes,
    invariant,
)
from shapecheck.testing import make


@carrier
@dataclass
class Batch:
    hidden: Float32[Tensor, "tokens target_hidden"]
    last: Annotated[Int64[Tensor, "bs"], indexes("tokens")]
    rows: Annotated[Int64[Tensor, "bs"], indexes("req_rows")]
    nodes: Annotated[Int32[Tensor, "bs topk"], indexes("num_draft_tokens", pad=-1)] | None = None


@pytest.fixture
def table(dims: Dims) -> Dims:
    return dims.with_sizes(req_rows=(9, "max_requests + pad row"))


@pytest.fixture
def step(level) -> Callable[[Batch, Dims], int]:
    """Says how many rows have crossed."""
    level("full")

    @contract
    def step(batch: Batch, dims: Dims) -> int:
        return len(batch.rows)

    return step


@pytest.fixture
def batch(dims: Dims) -> Batch:
    hidden = torch.zeros(5, dims["target_hidden"])
    nodes = torch.tensor([[0, 6], [-1, 3]], dtype=torch.int32)
    return Batch(hidden, torch.tensor([0, 4]), torch.tensor([1, 8]), nodes)


def test_positions_within_their_axis_cross(step, batch: Batch, table: Dims) -> None:
    assert step(batch, table) == 2
    assert step(replace(batch, nodes=None), table) == 2
    none = torch.zeros(0, dtype=torch.int64)
    assert step(Batch(batch.hidden[:0], none, none), table) == 0


@pytest.mark.parametrize(
    ("field", "values", "said"),
    [
        ("last", [0, 5], r"batch.last: indices lie in \[0, tokens=5\), got 5"),
        ("last", [-1, 4], r"batch.last: indices lie in \[0, tokens=5\), got -1"),
        ("rows", [1, 9], r"batch.rows: indices lie in \[0, req_rows=9\), got 9"),
        ("nodes", [[0, 7], [-1, 3]], r"\[0, num_draft_tokens=7\) or are -1, got 7"),
        ("nodes", [[0, -2], [-1, 3]], r"\[0, num_draft_tokens=7\) or are -1, got -2"),
    ],
)
def test_a_position_that_the_axis_lacks_is_refused(
    step, batch: Batch, table: Dims, field: str, values: list[int], said: str
) -> None:
    like = getattr(batch, field)
    wrong = replace(batch, **{field: torch.tensor(values, dtype=like.dtype)})
    with pytest.raises(ShapeContractError) as raised:
        step(wrong, table)
    assert raised.value.diagnostic.code == "SHP307"
    assert re.search(said, raised.value.diagnostic.message)


def test_the_error_says_where_the_size_comes_from(step, batch: Batch, table: Dims) -> None:
    with pytest.raises(ShapeContractError) as raised:
        step(replace(batch, rows=torch.tensor([40, 9])), table)
    notes = [note.message for note in raised.value.diagnostic.notes]
    assert "req_rows is 9 (max_requests + pad row)" in notes
    with pytest.raises(ShapeContractError, match=r"tokens is 5 \(bound by argument batch.hidden\)"):
        step(replace(batch, last=torch.tensor([0, 9])), table)


def test_strict_reads_no_values(level, batch: Batch, table: Dims) -> None:
    level("strict")

    @contract
    def step(batch: Batch, dims: Dims) -> int:
        return len(batch.rows)

    assert step(replace(batch, rows=torch.tensor([40, 9])), table) == 2


def test_an_axis_that_this_pair_has_no_number_for_bounds_nothing(
    step, batch: Batch, dims: Dims
) -> None:
    assert step(replace(batch, rows=torch.tensor([40, 9])), dims) == 2


def test_an_axis_of_an_absent_tensor_bounds_nothing(level, dims: Dims) -> None:
    level("full")

    @contract
    def step(
        last: Annotated[Int64[Tensor, "bs"], indexes("tokens")],
        bs: Int64[Tensor, "bs"],
        hidden: Float32[Tensor, "tokens target_hidden"] | None,
        dims: Dims,
    ) -> None: ...

    step(torch.tensor([7]), torch.tensor([0]), None, dims)
    with pytest.raises(ShapeContractError, match="SHP307"):
        step(torch.tensor([7]), torch.tensor([0]), torch.zeros(3, dims["target_hidden"]), dims)


Last = Annotated[Int64[Tensor, "bs"], indexes("tokens")]
Hidden = Float32[Tensor, "tokens"]


@carrier
@dataclass
class Marked:
    last: Last


@carrier
@dataclass
class Plain:
    bs: Int64[Tensor, "bs"]


ORDERS = {
    "a tensor": (Last, Hidden, lambda x: x),
    "optional": (Last | None, Hidden | None, lambda x: x),
    "optional mark": (Last | None, Hidden, lambda x: x),
    "optional axis": (Last, Hidden | None, lambda x: x),
    "lists": (list[Last], list[Hidden], lambda x: [x, x]),
    "optional lists": (list[Last] | None, list[Hidden] | None, lambda x: [x]),
    "optional in a list": (list[Last | None], Hidden | None, lambda x: [x]),
    "a union": (Marked | Plain, Hidden | None, lambda x: Marked(x)),
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("first", ["last", "hidden"])
def test_the_verdict_does_not_depend_on_the_order_of_arguments(
    level, name: str, first: str
) -> None:
    level("full")
    mark, axis, put = ORDERS[name]

    def last_first(last, hidden, bs): ...

    def hidden_first(hidden, last, bs): ...

    step = last_first if first == "last" else hidden_first
    step.__annotations__ = {"last": mark, "hidden": axis, "bs": Int64[Tensor, "bs"]}
    if first == "hidden":
        step.__annotations__ = {"hidden": axis, "last": mark, "bs": Int64[Tensor, "bs"]}
    step = contract(step)
    hidden, bs = torch.zeros(3), torch.tensor([0])
    several = [hidden] if "lists" in name else hidden
    step(last=put(torch.tensor([2])), hidden=several, bs=bs)
    with pytest.raises(ShapeContractError, match=r"\[0, tokens=3\) +got 7") as raised:
        step(last=put(torch.tensor([7])), hidden=several, bs=bs)
    assert raised.value.diagnostic.code == "SHP307"


def test_a_range_is_judged_before_an_invariant_looks_up_with_it(level) -> None:
    level("full")

    @carrier
    @dataclass
    class Chosen:
        last: Last
        scores: Float32[Tensor, "bs"] | None

        @invariant
        def is_finite(self) -> bool:
            return self.last.max() < 3 or bool(torch.zeros(3)[self.last].isfinite().all())

    @contract
    def step(chosen: Chosen | None, hidden: Hidden | None) -> None: ...

    with pytest.raises(ShapeContractError) as raised:
        step(Chosen(torch.tensor([7]), None), torch.zeros(3))
    assert raised.value.diagnostic.code == "SHP307"


def test_of_several_values_the_wrong_one_is_named(level) -> None:
    level("full")

    @contract
    def step(last: list[list[Last]], hidden: Hidden | None) -> None: ...

    good, wrong = torch.tensor([1]), torch.tensor([9])
    with pytest.raises(ShapeContractError, match=r"argument last\[1\]\[0\]\n +expected indices"):
        step([[good, good], [wrong]], torch.zeros(3))


LAYOUTS = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "uncoalesced": lambda x: torch.sparse_coo_tensor(
        torch.tensor([[0, 0], [1, 1]]), torch.stack([x[0, 1], 0 * x[0, 1]]), x.shape
    ),
}


@pytest.mark.filterwarnings("ignore:Sparse ")
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_sparse_index_is_judged_like_a_dense_one(level, name: str) -> None:
    level("full")

    @contract
    def step(
        at: Annotated[Int64[Tensor, "2 2"], indexes("tokens", pad=-1)], hidden: Hidden
    ) -> None: ...

    at = torch.tensor([[0, 2], [0, 0]])
    step(LAYOUTS[name](at), torch.zeros(3))
    with pytest.raises(ShapeContractError, match=r"got (0 to )?2"):
        step(LAYOUTS[name](at), torch.zeros(2))
    with pytest.raises(
        ShapeContractError, match=r"tokens=0\) or are -1 +got 0"
    ):  # what it leaves out is 0
        step(LAYOUTS[name](at * 0 - torch.eye(2, dtype=torch.int64).flip(0)), torch.zeros(0))


def test_a_pad_of_the_least_integer_is_one(level) -> None:
    level("full")
    least = -(2**63)

    @contract
    def step(at: Annotated[Int64[Tensor, "bs"], indexes("bs", pad=least)]) -> None: ...

    step(torch.tensor([least, 1]))
    with pytest.raises(ShapeContractError, match="SHP307"):
        step(torch.tensor([least + 1, 1]))


@pytest.mark.parametrize("pad", [-(2**63) - 1, -(2**70)])
def test_a_pad_that_no_integer_tensor_holds_is_refused(pad: int) -> None:
    for mark in (lambda: indexes("bs", pad=pad), lambda: ids("draft", pad=pad)):
        with pytest.raises(ContractTextError, match=r"SHP101 .*no integer tensor holds it"):
            mark()


def test_no_value_of_an_unsigned_index_is_the_pad(level) -> None:
    level("full")

    @contract
    def step(at: Annotated[UInt[Tensor, "bs"], indexes("bs", pad=-1)]) -> None: ...

    step(torch.tensor([0, 1], dtype=torch.uint8))
    with pytest.raises(ShapeContractError, match="SHP307"):
        step(torch.tensor([2**64 - 1, 0], dtype=torch.uint64))


def test_what_is_made_lies_in_its_axis(step, table: Dims) -> None:
    for seed in range(5):
        assert step(make(Batch, table, bs=3, tokens=4, seed=seed), table) == 3


@pytest.mark.parametrize(
    "mark", [ids("draft"), indexes("draft_vocab"), indexes("draft_hidden"), indexes("bs*req_rows")]
)
def test_what_dims_has_no_number_for_bounds_nothing_whatever_the_mark(
    level, mark, dims: Dims
) -> None:
    level("full")
    alone = Dims(sizes={"target_hidden": dims.sizes["target_hidden"]})
    marked = Annotated[Int64[Tensor, "bs"], mark]

    @contract
    def step(x: marked | None, y: Int64[Tensor, "bs"], z: marked, dims: Dims) -> int:
        return int(z.sum())

    row = torch.tensor([7])
    assert step(None, row, row, alone) == step(row, row, row, alone) == 7
