"""linear_rows against float64, with and without each of its fused parts."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.linear_rows import linear_rows, linear_rows_reference
from engine.kernels.norm import rms_norm_reference
from engine.kernels.row_tile import RowTile, ScaledRows

ONE = RowTile(block_o=8, block_i=32, block_t=1, warps=4, stages=2)
MANY = RowTile(block_o=16, block_i=64, block_t=8, warps=2, stages=2)


@pytest.mark.parametrize(("tile", "tokens"), [(ONE, 1), (MANY, 1), (MANY, 5), (MANY, 11)])
@pytest.mark.parametrize(("inputs", "outputs"), [(128, 48), (72, 40)])
def test_product_bias_and_residual(
    tile: RowTile,
    tokens: int,
    inputs: int,
    outputs: int,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    x, weight, bias = draw(tokens, inputs), draw(outputs, inputs), draw(outputs)
    residual = draw(tokens, outputs)
    out = linear_rows(x, weight, tile=tile, out_TO=blank(tokens, outputs))
    assert_close(out, linear_rows_reference(x.double(), weight.double()))
    out = linear_rows(
        x, weight, tile=tile, out_TO=blank(tokens, outputs), bias_O=bias, residual_TO=residual
    )
    reference = linear_rows_reference(
        x.double(), weight.double(), bias_O=bias.double(), residual_TO=residual.double()
    )
    assert_close(out, reference)
    assert linear_rows(x, weight, tile=tile, out_TO=residual, residual_TO=residual) is residual


@pytest.mark.parametrize(("tile", "tokens"), [(ONE, 1), (MANY, 5)])
def test_norm_spans_two_kernels(
    tile: RowTile,
    tokens: int,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    first, second = draw(72, 40), draw(56, 72)
    x, gain = draw(tokens, 40), draw(72)
    rows = ScaledRows(
        x_TI=blank(tokens, 72),
        square_TG=blank(tokens, -(-72 // tile.outputs), kind=torch.float32),
    )
    hidden = linear_rows(
        x, first, tile=tile, out_TO=blank(tokens, 72), next_gain_O=gain, next_rows=rows
    )
    out = linear_rows(rows, second, tile=tile, out_TO=blank(tokens, 56), eps=1e-5)
    _, normed = rms_norm_reference(hidden.double(), gain.double(), eps=1e-5)
    assert_close(out, normed @ second.double().T)
