"""wide_ring against float64 on the card; elsewhere wide_rows stands in and is tested."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.kernels.launch import multiplies_warpgroups
from engine.kernels.norm import rms_norm
from engine.kernels.wide_ring import BLOCK_O, RingTile
from engine.kernels.wide_rows import wide_rows, wide_rows_reference

TILE = RingTile(block_i=64, parts=1, slots=4)
needs_ring = pytest.mark.skipif(not multiplies_warpgroups(), reason="needs a Hopper card")


@pytest.mark.gpu
@needs_ring
@pytest.mark.parametrize("tokens", [1, 8, 9, 17, 40, 64, 65, 100, 128])
@pytest.mark.parametrize(
    "tile", [TILE, replace(TILE, parts=3), replace(TILE, block_i=128, rows=48)]
)
@pytest.mark.parametrize("biased", [False, True])
def test_parts_of_a_ring_add_up(
    tokens: int,
    tile: RingTile,
    biased: bool,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    # More steps than slots, and a number of them that three parts do not divide.
    x, weight = (draw(n, 640).bfloat16() for n in (tokens, 3 * tile.rows))
    bias = draw(len(weight)).bfloat16() if biased else None
    out = blank(tile.parts, tokens, len(weight), kind=torch.float32)
    assert wide_rows(x, weight, tile=tile, out_STO=out, bias_O=bias) is out
    wide = None if bias is None else bias.double()
    assert_close(out.sum(0), wide_rows_reference(x.double(), weight.double(), bias_O=wide))


@pytest.mark.gpu
@needs_ring
def test_fewer_steps_than_slots(
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    x, weight = draw(40, 128).half(), draw(BLOCK_O, 128).half()
    out = blank(1, 40, BLOCK_O, kind=torch.float32)
    wide_rows(x, weight, tile=TILE, out_STO=out)
    assert_close(out[0], wide_rows_reference(x.double(), weight.double()))


@pytest.mark.gpu
@needs_ring
def test_chained_rings_are_what_unchained_ones_are(draw: Callable[..., Tensor]) -> None:
    """Products and norms in turn, each of which starts while the one before it still runs."""
    width, tokens = 2048, 64
    weights = [draw(width, width).bfloat16() / width**0.5 for _ in range(4)]
    first, gain = draw(tokens, width).bfloat16(), torch.ones_like(draw(width).bfloat16())
    tile = replace(TILE, block_i=128, parts=4)

    def run(*, chained: bool) -> Tensor:
        hidden, row = rms_norm(first, gain, eps=1e-5)
        for turn in range(100):
            parts = torch.empty(tile.parts, tokens, width, device=row.device)
            wide_rows(row, weights[turn % 4], tile=tile, out_STO=parts, chained=chained)
            hidden, row = rms_norm(parts, gain, eps=1e-5, residual_TH=hidden, chained=chained)
        return row

    apart = run(chained=False)
    assert bool(apart.isfinite().all())
    for _ in range(5):
        assert torch.equal(run(chained=True), apart)


def test_a_matrix_that_does_not_divide_is_refused() -> None:
    out = torch.empty(1, 4, 100)
    with pytest.raises(AssertionError, match="does not divide a matrix of 100 x 64"):
        wide_rows(torch.zeros(4, 64), torch.zeros(100, 64), tile=TILE, out_STO=out)
