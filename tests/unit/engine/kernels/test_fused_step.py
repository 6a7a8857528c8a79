"""A whole forward through the kernels against float64, alone and inside a CUDA graph."""

from collections.abc import Callable
from dataclasses import fields

import pytest
import torch
from torch import Tensor

from engine.bench.replay import capture
from engine.kernels.row_tile import RowTile
from engine.kernels.stream_tile import StreamTile
from tests.bench.fused_step import FusedStep, Tiles, choose_tiles
from tests.bench.shapes import Shape, random_weights

TINY = Shape(name="tiny", layers=2, hidden=72, heads=2, kv_heads=1, head_width=32, ffn=40, vocab=40)
SMALL = Shape(
    name="small", layers=3, hidden=512, heads=8, kv_heads=2, head_width=64, ffn=1024, vocab=2048
)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize(("tokens", "block_t"), [(1, 1), (1, 8), (3, 8), (9, 8)])
def test_forward(
    tokens: int,
    block_t: int,
    device: str,
    dtype: torch.dtype,
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    torch.manual_seed(6)
    step = FusedStep(
        TINY, random_weights(TINY, device=device, dtype=dtype), tokens=tokens, context=70
    )
    tile = RowTile(block_o=16, block_i=64, block_t=block_t, warps=2, stages=2)
    tiles = Tiles(**{field.name: tile for field in fields(Tiles)})
    assert_close(step.run(tiles, chained=False), step.reference())


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(
    ("tokens", "ring"),
    [(1, False), (3, False), *((tokens, True) for tokens in (1, 2, 6, 8, 9, 16, 33))],
)
def test_chained_forward_in_a_graph(
    tokens: int, ring: bool, assert_close: Callable[[Tensor, Tensor], None]
) -> None:
    torch.manual_seed(7)
    step = FusedStep(SMALL, random_weights(SMALL), tokens=tokens, context=300)
    reference = step.reference()
    tiles = choose_tiles(SMALL, tokens=tokens, streams=ring)
    assert isinstance(tiles.out, StreamTile if ring else RowTile)
    graph = capture(lambda: step.run(tiles))
    for _ in range(3):
        step.logits.fill_(float("nan"))
        graph.replay()
        assert_close(step.logits, reference)


@pytest.mark.gpu
@needs_gpu
def test_invariant_rows_are_bitwise_those_of_one_token() -> None:
    torch.manual_seed(8)
    weights = random_weights(SMALL)
    many = FusedStep(SMALL, weights, tokens=6, context=300)
    logits = many.run(choose_tiles(SMALL, tokens=6, invariant=True)).clone()
    one = FusedStep(SMALL, weights, tokens=1, context=305)
    one.keys, one.values = many.keys, many.values
    slots = torch.cat((many.table_PM[1], many.slot_T))
    tiles = choose_tiles(SMALL, tokens=1, invariant=True)
    for row in range(6):
        one.table_PM[1] = slots[:305]
        one.prefix_B.fill_(300 + row)
        one.tail_BW.fill_(int(slots[300 + row]))
        one.slot_T.fill_(int(slots[300 + row]))
        one.position_T.fill_(300 + row)
        one.id_T.copy_(many.id_T[row : row + 1])
        assert torch.equal(one.run(tiles)[0], logits[row])
