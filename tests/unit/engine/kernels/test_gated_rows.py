"""gated_rows against float64."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.gated_rows import gated_rows, gated_rows_reference
from engine.kernels.row_tile import RowTile, ScaledRows

ONE = RowTile(block_o=8, block_i=32, block_t=1, warps=4, stages=2)
MANY = RowTile(block_o=16, block_i=64, block_t=8, warps=2, stages=2)


@pytest.mark.parametrize(("tile", "tokens"), [(ONE, 1), (MANY, 3), (MANY, 9)])
@pytest.mark.parametrize(("inputs", "width"), [(128, 24), (72, 20)])
def test_gate_and_up(
    tile: RowTile,
    tokens: int,
    inputs: int,
    width: int,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    x, weight, gain = draw(tokens, inputs), draw(2 * width, inputs), draw(inputs)
    halves = x.float().pow(2).unflatten(-1, (2, -1)).sum(-1)
    rows = ScaledRows(x_TI=x * gain, square_TG=halves.contiguous())
    out = gated_rows(rows, weight, tile=tile, out_TU=blank(tokens, width), eps=1e-5)
    reference = gated_rows_reference(x.double(), weight.double(), gain_I=gain.double(), eps=1e-5)
    assert_close(out, reference)
    assert out.dtype == x.dtype
    assert torch.isfinite(out).all()
