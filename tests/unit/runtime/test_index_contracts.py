"""Contracts about indices: what is refused at decoration, and what a mark ties together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import torch
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor

from shapecheck import (
    ContractTextError,
    Dims,
    ShapeContractError,
    carrier,
    contract,
    ids,
    indexes,
)

from .test_indexes import Hidden, Last, Marked, Plain


def test_an_axis_that_no_tensor_has_is_refused() -> None:
    with pytest.raises(ContractTextError, match=r"SHP103 .*argument last indexes tokens"):

        @contract
        def step(
            last: Annotated[Int64[Tensor, "bs"], indexes("tokens")], bs: Int64[Tensor, "bs"]
        ) -> None: ...


def test_an_axis_that_only_a_result_has_says_nothing_of_an_argument() -> None:
    def step(last, bs): ...

    step.__annotations__ = {"last": Last, "bs": Int64[Tensor, "bs"], "return": Hidden}
    with pytest.raises(ContractTextError, match=r"SHP103 .*argument last indexes tokens"):
        contract(step)

    @contract
    def other(hidden: Hidden, bs: Int64[Tensor, "bs"]) -> Last: ...

    assert callable(other)


def test_the_arms_of_a_union_say_nothing_of_one_another() -> None:
    @carrier
    @dataclass
    class Other:
        bs: Int64[Tensor, "bs"]
        hidden: Hidden

    with pytest.raises(ContractTextError, match=r"SHP103 .*it.last indexes tokens"):

        @contract
        def step(it: Marked | Other, bs: Int64[Tensor, "bs"]) -> None: ...

    @contract
    def both(it: Marked | Plain, hidden: Hidden, bs: Int64[Tensor, "bs"]) -> None: ...

    assert callable(both)


Rows = Annotated[Int64[Tensor, "bs"], indexes("req_rows")]


def test_without_dims_a_mark_is_held_to_the_tensor_that_has_its_axis(level) -> None:
    level("full")

    @contract
    def step(rows: Rows, table: Int64[Tensor, "req_rows"], bs: Int64[Tensor, "bs"]) -> None: ...

    table, bs = torch.zeros(3, dtype=torch.int64), torch.tensor([0])
    step(torch.tensor([2]), table, bs)
    with pytest.raises(ShapeContractError, match=r"\[0, req_rows=3\) +got 3"):
        step(torch.tensor([3]), table, bs)


def test_without_dims_and_such_a_tensor_a_mark_is_left_to_the_trace(level, dims: Dims) -> None:
    level("full")

    @contract
    def function(rows: Rows, tokens: Annotated[Int64[Tensor, "bs"], ids("draft")]) -> None: ...

    class Table:
        dims: Dims | None = None

        @contract
        def read(self, rows: Rows, bs: Int64[Tensor, "bs"]) -> None: ...

    table = Table()
    rows, bs = torch.tensor([40]), torch.tensor([0])
    function(rows, rows)
    table.read(rows, bs)
    table.dims = dims.with_sizes(req_rows=(3, "three"))
    with pytest.raises(ShapeContractError, match=r"\[0, req_rows=3\) +got 40"):
        table.read(rows, bs)


def test_without_dims_a_name_of_dims_that_only_a_result_has_is_loose() -> None:
    with pytest.raises(ContractTextError, match=r"SHP103 .*'req_rows' occurs only in return"):

        @contract
        def step(rows: Rows, bs: Int64[Tensor, "bs"]) -> Int64[Tensor, "req_rows"]: ...


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
        (
            Annotated[Int64[Tensor, "bs"], indexes("req_rows"), indexes("bs")],
            "count along two axes",
        ),
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
