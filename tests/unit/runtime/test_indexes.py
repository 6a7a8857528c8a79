"""Indices at run time: bounded by the axis that the contract names, at full and only there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
import torch
from jaxtyping import Bool, Float, Float32, Int32, Int64
from torch import Tensor

from shapecheck import ContractTextError, Dims, ShapeContractError, carrier, contract, indexes
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


def test_an_axis_that_no_tensor_has_is_refused() -> None:
    with pytest.raises(ContractTextError, match=r"SHP103 .*argument last indexes tokens"):

        @contract
        def step(
            last: Annotated[Int64[Tensor, "bs"], indexes("tokens")], bs: Int64[Tensor, "bs"]
        ) -> None: ...


def test_a_mark_ties_an_axis_that_occurs_once() -> None:
    @contract
    def step(
        last: Annotated[Int64[Tensor, "bs"], indexes("tokens")],
        hidden: Float32[Tensor, "tokens"],
        bs: Int64[Tensor, "bs"],
    ) -> None: ...

    assert callable(step)


@pytest.mark.parametrize(
    ("axis", "pad", "said"),
    [
        ("bs topk", None, "name one axis"),
        ("", None, "name one axis"),
        (None, None, "name one axis"),
        (3, None, "name one axis"),
        ("bs", 0, "write a negative number"),
    ],
)
def test_a_mark_that_names_no_axis_is_refused(axis: str, pad: int | None, said: str) -> None:
    with pytest.raises(ContractTextError, match=said):
        indexes(axis, pad=pad)


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Annotated[Int64[Tensor, "bs"], indexes("req_row")], "SHP102 .*req_rows"),
        (Annotated[Int64[Tensor, "bs"], indexes("req_rows"), indexes("bs")], "another axis"),
        (Annotated[int, indexes("req_rows")], "marks a tensor"),
        (Annotated[Float[Tensor, "bs"], indexes("req_rows")], "marks whole numbers"),
        (Annotated[Bool[Tensor, "bs"], indexes("req_rows")], "marks whole numbers"),
    ],
)
def test_a_mark_in_a_wrong_place_is_refused(hint: object, said: str) -> None:
    def step(it, other): ...

    step.__annotations__ = {"it": hint, "other": Int64[Tensor, "bs"]}
    with pytest.raises(ContractTextError, match=f"(?s){said}"):
        contract(step)


def test_what_is_made_lies_in_its_axis(step, table: Dims) -> None:
    for seed in range(5):
        assert step(make(Batch, table, bs=3, tokens=4, seed=seed), table) == 3
