"""wide_rows and wide_gated against float64, whatever the cut."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.kernels.wide_rows import (
    WideTile,
    wide_gated,
    wide_gated_reference,
    wide_rows,
    wide_rows_reference,
)

TILE = WideTile(block_o=64, block_i=32, parts=1, warps=4, stages=2)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("tokens", "inputs", "outputs"), [(5, 128, 72), (130, 72, 40), (0, 64, 8)])
@pytest.mark.parametrize("biased", [False, True])
def test_parts_add_up(
    parts: int,
    tokens: int,
    inputs: int,
    outputs: int,
    biased: bool,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    x, weight = draw(tokens, inputs), draw(outputs, inputs)
    bias = draw(outputs) if biased else None
    tile = replace(TILE, parts=parts)
    out = blank(parts, tokens, outputs, kind=torch.float32)
    assert wide_rows(x, weight, tile=tile, out_STO=out, bias_O=bias) is out
    if tokens:
        wide = None if bias is None else bias.double()
        assert_close(out.sum(0), wide_rows_reference(x.double(), weight.double(), bias_O=wide))


@pytest.mark.parametrize("tokens", [0, 3, 130])
@pytest.mark.parametrize(("inputs", "width"), [(128, 64), (72, 40), (64, 100)])
@pytest.mark.parametrize("rows", [0, 48])
def test_gate_and_up(
    tokens: int,
    rows: int,
    inputs: int,
    width: int,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    x, weight = draw(tokens, inputs), draw(2 * width, inputs) / inputs**0.5
    tile = replace(TILE, rows=rows)
    out = wide_gated(x, weight, tile=tile, out_TU=blank(tokens, width))
    if tokens:
        assert_close(out, wide_gated_reference(x.double(), weight.double()))
