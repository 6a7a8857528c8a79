"""attention_cuts: how a split of attention is cut, by the rows of its tile, the width of a head and
how many programs there are. What was fastest on one H200 with 1070 and 1100 columns.
"""

from dataclasses import dataclass

import triton

BLOCK_Y = 64
"""Columns of the smallest block; a split is a multiple of it."""

FEW, SOME = 32, 128
"""Programs before any splitting that are few, and some; more fill the card by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingCut:
    """How a program is cut: slices of a block and their columns, warps that share the rows of a
    slice, blocks of the ring; `columns` are those of a split, 0 for no splitting.
    """

    columns: int
    slices: int
    slice_y: int
    tall: int
    slots: int

    @property
    def block(self) -> int:
        """Columns of one block."""
        return self.slices * self.slice_y

    def options(self) -> dict[str, int]:
        """Keyword arguments of a launch."""
        return {
            "SLICES": self.slices,
            "SLICE": self.slice_y,
            "TALL": self.tall,
            "SLOTS": self.slots,
            "num_warps": self.slices * self.tall,
        }


_CUTS: dict[tuple[int, int, int], RingCut] = {
    (64, 16, SOME): RingCut(columns=192, slices=1, slice_y=64, tall=1, slots=2),
    (64, 32, SOME): RingCut(columns=320, slices=1, slice_y=64, tall=2, slots=4),
    (128, 32, SOME): RingCut(columns=256, slices=1, slice_y=32, tall=2, slots=4),
    (128, 64, FEW): RingCut(columns=128, slices=1, slice_y=64, tall=4, slots=3),
    (64, 16, 0): RingCut(columns=0, slices=2, slice_y=64, tall=1, slots=3),
    (128, 64, 0): RingCut(columns=0, slices=1, slice_y=64, tall=4, slots=2),
}


def ring_cut(programs: int, rows: int, *, width: int) -> RingCut | None:
    """The cut of attention with so many programs before any splitting, tiles of so many rows and
    heads of this width; None where the portable kernel was as fast.
    """
    crowd = next((limit for limit in (FEW, SOME) if programs <= limit), 0)
    return _CUTS.get((width, rows, crowd))


def tile_rows(rows: int) -> int:
    """Rows of the tile that so many query rows of one key/value head take."""
    return max(16, triton.next_power_of_2(rows))


def depth(block_n: int, width: int, columns: int, programs: int) -> tuple[int, int, int]:
    """Columns of a block, warps and pipeline stages of a split, by the rows of its tile, the width
    of a head, its length and how many there are; `programs` are all.

    A split of one block has nothing to load ahead. Two loads follow each other for every block, a
    slot and then its key, so five or seven stages keep two or three blocks on their way.
    """
    if columns == BLOCK_Y:
        return BLOCK_Y, 4 if block_n in (32, 64) else 8, 2
    if block_n <= 16:
        if columns <= 1024:
            return BLOCK_Y, 2, 5
        return BLOCK_Y, 1 if width <= 64 else 2, 7
    if columns == 2 * BLOCK_Y:
        return (columns, 4, 5) if block_n <= 32 else (BLOCK_Y, 4, 5)
    if block_n <= 32:
        return BLOCK_Y, 2, 5
    if block_n > 64:
        return BLOCK_Y, 8, 3
    if width <= 64:
        return BLOCK_Y, 4, 5
    # Three stages of small blocks leave room for a second program on a multiprocessor.
    return (2 * BLOCK_Y, 4, 5) if programs <= 128 else (BLOCK_Y, 4, 3)
