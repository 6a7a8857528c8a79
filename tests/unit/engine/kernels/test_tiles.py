"""choose_tile: what it returns can be launched."""

import pytest

from engine.kernels.row_tile import RowTile
from engine.kernels.stream_tile import SHARED_BYTES, StreamTile
from engine.kernels.tiles import FEW_TOKENS, WIDE, Product, choose_tile, choose_wide
from engine.kernels.wide_ring import BLOCK_O, RingTile
from engine.kernels.wide_rows import WIDEST_TILE

WIDEST = 256
"""Rows that any shape has a wide cut for, at the most."""
SIZES = [
    (Product.QKV, 6144, 4096, 128),
    (Product.GATE_UP, 28672, 4096, 128),
    (Product.DOWN, 4096, 14336, 128),
    (Product.HEAD, 128256, 2048, 64),
    (Product.GATE_UP, 16384, 2048, 64),
    (Product.DOWN, 2048, 8192, 64),
    (Product.OUT, 2048, 2048, 64),
    (Product.QKV, 960, 576, 64),
    (Product.OUT, 576, 576, 64),
    (Product.OUT, 72, 72, 24),
    (Product.QKV, 80, 48, 8),
    (Product.QKV, 120, 72, 12),
]


@pytest.mark.parametrize(("product", "outputs", "inputs", "width"), SIZES)
@pytest.mark.parametrize("tokens", [1, 2, 6, 9, 64, 512])
def test_tile_divides_its_matrix(
    product: Product, outputs: int, inputs: int, width: int, tokens: int
) -> None:
    tile = choose_tile(product, tokens=tokens, outputs=outputs, inputs=inputs, head_width=width)
    assert (tile.block_t == 1) == (tokens == 1 and isinstance(tile, RowTile))
    if isinstance(tile, StreamTile):
        assert inputs % tile.chunk == 0
        assert outputs % tile.outputs == 0
        slots = tile.slots * tile.per_sm
        assert 2 * slots * tile.chunk * (tile.outputs + tile.block_t) <= SHARED_BYTES
    if product is Product.QKV:
        assert width % tile.outputs == 0


@pytest.mark.parametrize(("sizes", "tile"), FEW_TOKENS.items())
def test_as_many_slots_as_the_table_says(sizes: tuple[int, int], tile: StreamTile) -> None:
    """Eight tokens, which the cuts were chosen with, leave room for all of them."""
    assert tile.for_tokens(8) == tile
    assert tile.fits(sizes[1], sizes[0] // 2)


def test_invariant_tiles_ignore_how_many_tokens_there_are() -> None:
    tiles = {
        (tile.slice_i, tile.warps)
        for tokens in (1, 2, 6, 64)
        if isinstance(
            tile := choose_tile(
                Product.DOWN, tokens=tokens, outputs=4096, inputs=14336, invariant=True
            ),
            StreamTile,
        )
    }
    assert len(tiles) == 1


def test_one_token_without_a_ring_is_multiplied_and_added() -> None:
    """But in the batch-invariant mode, where every number of tokens has one order of sums."""
    for options in ({"streams": False, "outputs": 4096}, {"streams": True, "outputs": 4099}):
        alone = choose_tile(Product.OUT, tokens=1, inputs=4096, **options)
        assert isinstance(alone, RowTile)
        assert alone.block_t == 1
        same = choose_tile(Product.OUT, tokens=1, inputs=4096, invariant=True, **options)
        assert same == choose_tile(Product.OUT, tokens=6, inputs=4096, **options)
    ring = choose_tile(Product.OUT, tokens=1, outputs=4096, inputs=4096)
    assert ring == choose_tile(Product.OUT, tokens=6, outputs=4096, inputs=4096)


def test_portable_where_streams_cannot_run() -> None:
    tile = choose_tile(Product.OUT, tokens=6, outputs=4096, inputs=4096, streams=False)
    assert isinstance(tile, RowTile)


@pytest.mark.parametrize(("product", "outputs", "inputs", "width"), SIZES)
@pytest.mark.parametrize("tokens", [0, 1, 17, 32, 33, 64, 100, 128, 129, 193, 256, 257, 4096])
def test_wide_tile_has_work_for_every_part(
    product: Product, outputs: int, inputs: int, width: int, tokens: int
) -> None:
    tile = choose_wide(product, tokens=tokens, outputs=outputs, inputs=inputs)
    if not 0 < tokens <= WIDEST:
        assert tile is None
    if tile is None:
        return
    assert not isinstance(tile, RingTile), "nobody said that the card has rings"
    options = tile.options(tokens)
    assert options["BLOCK_T"] >= min(tokens, WIDEST_TILE)
    assert inputs // tile.block_i >= tile.parts
    matrices = 2 if product is Product.GATE_UP else 1
    rows = matrices * tile.block_o + options["BLOCK_T"]
    assert 2 * tile.stages * tile.block_i * rows <= SHARED_BYTES
    if product in (Product.GATE_UP, Product.HEAD):
        assert tile.parts == 1


@pytest.mark.parametrize(
    ("sizes", "room", "tile"),
    [
        (sizes, room, tile)
        for sizes, cuts in WIDE.items()
        for room, tile in cuts.items()
        if isinstance(tile, RingTile)
    ],
)
def test_a_wide_ring_divides_its_matrix_and_fits(
    sizes: tuple[int, int], room: int, tile: RingTile
) -> None:
    outputs, inputs = sizes
    assert choose_wide(Product.OUT, tokens=room, outputs=outputs, inputs=inputs, rings=True) is tile
    assert tile.fits(inputs, outputs)
    assert tile.parts <= inputs // tile.block_i
    assert room <= WIDEST_TILE
    assert 2 * tile.slots * tile.block_i * (BLOCK_O + room) <= SHARED_BYTES
