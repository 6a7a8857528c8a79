"""The request table: rows are taken and given back, row 0 stays the pad row."""

from __future__ import annotations

import pytest
import torch

from engine.errors import EngineError
from engine.kv.table import PAD_ROW, RequestTable
from shapecheck import ShapeContractError, enable


def test_rows_are_taken_once_and_come_back_empty() -> None:
    table = RequestTable(rows=4, columns=5, device="cpu")
    rows = [table.take_row() for _ in range(3)]
    assert sorted(rows) == [1, 2, 3]
    with pytest.raises(EngineError, match="raise max_requests"):
        table.take_row()
    table.write(rows[1], 2, [7, 8])
    assert table.read(rows[1], 0, 5) == [0, 0, 7, 8, 0]
    table.give_back(rows[1])
    assert table.free == 1
    assert table.take_row() == rows[1]
    assert table.read(rows[1], 0, 5) == [0] * 5
    assert not table.slots_PM[PAD_ROW].any()


def test_columns_of_several_rows() -> None:
    table = RequestTable(rows=3, columns=4, device="cpu")
    table.write(1, 0, [5, 6, 7, 8])
    table.write(2, 0, [1, 2, 3, 4])
    rows, columns = torch.tensor([2, 1, 0]), torch.tensor([[0, 3], [1, 2], [0, 1]])
    assert table.columns_of(rows, columns).tolist() == [[1, 4], [6, 7], [0, 0]]


def test_a_column_that_is_not_leased_is_refused_at_full() -> None:
    table = RequestTable(rows=3, columns=4, device="cpu")
    table.write(1, 0, [5, 6])
    with enable(RequestTable, level="full"):
        table.columns_of(torch.tensor([1, PAD_ROW]), torch.tensor([[0, 1], [2, 3]]))
        with pytest.raises(ShapeContractError, match=r"(?s)SHP206 .*columns_are_leased"):
            table.columns_of(torch.tensor([1]), torch.tensor([[1, 2]]))


def test_pad_row_is_never_given_back() -> None:
    table = RequestTable(rows=3, columns=4, device="cpu")
    with pytest.raises(AssertionError, match="pad row"):
        table.give_back(PAD_ROW)


def test_table_without_room_is_refused() -> None:
    with pytest.raises(EngineError, match="req_rows=1"):
        RequestTable(rows=1, columns=4, device="cpu")
