"""RequestTable: which slot holds which position of which request.

P rows, pad row 0 included   M columns, one per position
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Int64
from torch import Tensor

import engine.vocabulary  # noqa: F401  declares the engine's own axis names
from engine.errors import EngineError, SizeError
from engine.kv.allocate import zeros
from engine.kv.slots import PAD_SLOT
from engine.transfer import to_device
from shapecheck import contract, indexes, invariant

PAD_ROW = 0


class RequestTable:
    """`slots_PM[row, position]` is a slot id; row 0 is all pad slots and serves padded rows."""

    def __init__(self, *, rows: int, columns: int, device: torch.device | str) -> None:
        if rows < 2:
            raise SizeError.of(
                f"req_rows={rows}: pad row 0 and one request are the least; raise it",
                expected="req_rows of 2 or more",
                found=rows,
            )
        self.slots_PM = zeros(
            (rows, columns), dtype=torch.int64, device=device, what="the request table"
        )
        self._free = list(range(rows - 1, PAD_ROW, -1))

    @property
    def free(self) -> int:
        """How many requests can still be admitted."""
        return len(self._free)

    @property
    def columns(self) -> int:
        """The longest request in positions, the window beyond its last token included."""
        return self.slots_PM.shape[1]

    def take_row(self) -> int:
        """A row nobody uses; EngineError when all are used."""
        if not self._free:
            raise EngineError("every row of the request table is in use; raise max_requests")
        return self._free.pop()

    def give_back(self, row: int) -> None:
        """The row may be taken again and points at the pad slot only."""
        assert row != PAD_ROW, "the pad row is never given out"
        assert row not in self._free, f"row {row} is not in use"
        self.slots_PM[row].zero_()
        self._free.append(row)

    def write(self, row: int, start: int, slots: Sequence[int]) -> None:
        """Positions [start, start + len(slots)) of the row are held by these slots."""
        if slots:
            values = torch.tensor(slots, dtype=torch.int64)
            values = to_device(values, self.slots_PM.device)
            self.slots_PM[row, start : start + len(slots)] = values

    def write_many(self, rows: Sequence[int], columns: Sequence[int], slots: Sequence[int]) -> None:
        """Entry i: position columns[i] of row rows[i] is held by slots[i]; one copy for all."""
        if slots:
            entries = torch.tensor([list(rows), list(columns), list(slots)], dtype=torch.int64)
            where, column, slot = to_device(entries, self.slots_PM.device)
            self.slots_PM[where, column] = slot

    def read(self, row: int, start: int, end: int) -> list[int]:
        """The slots of positions [start, end): reads the device, so not for the hot path."""
        return self.slots_PM[row, start:end].tolist()

    @contract
    def columns_of(
        self,
        rows_B: Annotated[Int64[Tensor, "bs"], indexes("req_rows")],
        columns_BW: Annotated[Int64[Tensor, "bs window"], indexes("max_context")],
    ) -> Annotated[Int64[Tensor, "bs window"], indexes("num_slots")]:
        """(B,) rows and (B, W) positions -> (B, W) slot ids, on the device."""
        return self.slots_PM[rows_B[:, None], columns_BW]


@invariant(RequestTable.columns_of)
def columns_are_leased(rows_B: Tensor, result: Tensor) -> Tensor:
    """Every column that a request reads or writes holds a slot; only the pad row has none."""
    return (result != PAD_SLOT) | (rows_B == PAD_ROW)[:, None]
