"""tiles: which kernel and which cut a linear product of a few rows gets.

The tables hold what was fastest on one H200 for the Llama-8B and Llama-1B shapes: for few tokens
measured inside whole forwards (of 1, 6, 8 and 16 tokens), because a cut that wins alone can starve
its neighbour; for more one product at a time, weights rotated, then again inside forwards of 32,
64, 128 and 256 rows. Other shapes get the cut that was best most often.

I inputs   O outputs (gate and up counted together)
"""

from dataclasses import replace
from enum import Enum

from engine.kernels.row_tile import RowTile
from engine.kernels.stream_tile import StreamTile
from engine.kernels.wide_ring import BLOCK_O, RingTile
from engine.kernels.wide_rows import WIDEST_TILE, WideTile


class Product(Enum):
    """The linear products of a decoder, which differ in what a tile must hold together."""

    QKV = "qkv"
    OUT = "out"
    GATE_UP = "gate_up"
    DOWN = "down"
    HEAD = "head"


def _stream(
    block_o: int, slice_i: int, warps: int, slots: int, per_sm: int = 1, *, blocks: int = 2
) -> StreamTile:
    return StreamTile(
        block_o=block_o, slice_i=slice_i, block_t=8, warps=warps, slots=slots, per_sm=per_sm,
        blocks=blocks,
    )  # fmt: skip


def _wide(
    block_o: int, block_i: int, parts: int, stages: int, *, warps: int = 4, rows: int = 0
) -> WideTile:
    return WideTile(
        block_o=block_o, block_i=block_i, parts=parts, warps=warps, stages=stages, rows=rows
    )


def _ring(block_i: int, parts: int, slots: int, *, rows: int = BLOCK_O) -> RingTile:
    return RingTile(block_i=block_i, parts=parts, slots=slots, rows=rows)


FEW_TOKENS: dict[tuple[int, int], StreamTile] = {
    (6144, 4096): _stream(16, 128, 2, 5, 2),
    (4096, 4096): _stream(16, 128, 2, 8),
    (28672, 4096): _stream(16, 128, 4, 4),
    (4096, 14336): _stream(16, 128, 2, 10),
    (128256, 4096): _stream(32, 128, 2, 6),
    (3072, 2048): _stream(16, 128, 4, 4),
    (2048, 2048): _stream(16, 64, 4, 6, blocks=1),
    (16384, 2048): _stream(16, 128, 2, 5, 2),
    (2048, 8192): _stream(16, 128, 4, 8, blocks=1),
    (128256, 2048): _stream(16, 128, 2, 5, 2),
}
WIDE: dict[tuple[int, int], dict[int, WideTile | RingTile]] = {
    (6144, 4096): {
        32: _ring(128, 1, 6, rows=48), 64: _ring(128, 1, 6, rows=48), 128: _ring(64, 1, 8, rows=48),
    },
    (4096, 4096): {32: _ring(128, 2, 6), 64: _ring(128, 2, 6), 128: _ring(128, 2, 4)},
    (28672, 4096): {
        32: _wide(64, 128, 1, 4, rows=56), 64: _wide(128, 64, 1, 4, warps=8, rows=112),
        128: _wide(128, 64, 1, 4, warps=8),
    },
    (4096, 14336): {32: _ring(256, 2, 4), 64: _ring(128, 2, 6), 128: _ring(128, 2, 4)},
    (128256, 4096): {32: _wide(64, 128, 1, 3), 64: _wide(128, 64, 1, 6)},
    (3072, 2048): {32: _ring(128, 2, 4), 64: _ring(128, 2, 4), 128: _ring(128, 2, 4)},
    (2048, 2048): {
        32: _wide(128, 64, 8, 6), 64: _ring(128, 4, 4), 128: _ring(128, 4, 4),
        256: _wide(64, 128, 2, 4),
    },
    (16384, 2048): {
        32: _wide(64, 128, 1, 3), 64: _wide(64, 64, 1, 5), 128: _wide(64, 64, 1, 5),
        256: _wide(128, 64, 1, 4, warps=8),
    },
    (2048, 8192): {
        32: _wide(64, 64, 4, 8), 64: _ring(128, 4, 4), 128: _ring(128, 4, 4),
        256: _wide(64, 128, 2, 4),
    },
    (128256, 2048): {32: _wide(64, 64, 1, 5), 64: _wide(64, 64, 1, 5)},
}  # fmt: skip
_ANY_ROW = RowTile(block_o=8, block_i=512, block_t=1, warps=4, stages=1)
_ANY_STREAM = (_stream(16, 64, 4, 5), _stream(16, 64, 2, 8), _stream(16, 64, 1, 8))
_PORTABLE = RowTile(block_o=16, block_i=128, block_t=8, warps=4, stages=3)


def choose_tile(
    product: Product,
    *,
    tokens: int,
    outputs: int,
    inputs: int,
    head_width: int = 0,
    streams: bool = True,
    invariant: bool = False,
) -> RowTile | StreamTile:
    """The cut for so many tokens: a ring's, where the card has one and it divides the matrix.

    `streams` says that the weights are 16-bit and launch.overlaps() holds; `invariant` gives every
    number of tokens the same order of sums. QKV needs `head_width`, which its tiles must divide.
    """
    block = {Product.GATE_UP: outputs // 2, Product.QKV: head_width // 2}.get(
        product, outputs // 2 if outputs % 2 == 0 else 0
    )
    for cut in (FEW_TOKENS.get((outputs, inputs)), *_ANY_STREAM):
        if streams and cut is not None and block and cut.fits(inputs, block):
            return cut.for_tokens(tokens)
    tile = _ANY_ROW if tokens == 1 and not invariant else _PORTABLE
    return _inside_head(tile, head_width) if product is Product.QKV else tile


def _inside_head(tile: RowTile, head_width: int) -> RowTile:
    """The tile with as many rows as divide a head of this (even) width."""
    while head_width % tile.block_o:
        tile = replace(tile, block_o=tile.block_o // 2)
    return tile


def choose_wide(
    product: Product, *, tokens: int, outputs: int, inputs: int, rings: bool = False
) -> WideTile | RingTile | None:
    """The cut of a product of more rows than choose_tile is for; None leaves it to torch.

    `rings` says that the weights are 16-bit and launch.multiplies_warpgroups() holds.

    torch's products win where the matrix units are the limit: from 129 rows on, earlier or later
    for some shapes, and where a second tile of tokens would not be half full. GATE_UP is
    wide_gated's, whose tiles have one part, as those of the HEAD.
    """
    if not tokens or WIDEST_TILE < tokens <= WIDEST_TILE + WIDEST_TILE // 2:
        return None
    room = max(32, 1 << (tokens - 1).bit_length())
    if (outputs, inputs) in WIDE:
        tile = WIDE[outputs, inputs].get(room)
        if rings or not isinstance(tile, RingTile):
            return tile
    if room >= WIDEST_TILE or inputs % 64:
        return None
    if product in (Product.GATE_UP, Product.HEAD):
        return _wide(64, 64, 1, 5)
    # Enough programs for two on every multiprocessor of a large card, each with some steps to do.
    tiles, steps = -(-outputs // 64), inputs // 64
    return _wide(64, 64, max(1, min(8, steps // 4, 264 // tiles)), 5)
