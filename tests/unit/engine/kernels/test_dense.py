"""A view with gaps never reaches a kernel, which would read what stands next to it in memory."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.activation import silu_mul
from engine.kernels.gated_rows import gated_rows
from engine.kernels.launch import assert_dense
from engine.kernels.prefill_attention import prefill_attention
from engine.kernels.row_tile import RowTile, ScaledRows
from engine.kernels.truncate import truncate

REFUSED = r"strides .* call contiguous\(\)"


def gapped(x: Tensor) -> Tensor:
    """The same values, with others between them."""
    return torch.stack((x, x), dim=-1)[..., 0]


def test_what_is_refused() -> None:
    dense = torch.ones(2, 3)
    assert_dense(dense, dense[:1], dense[0])
    for view in (gapped(dense), dense.T, dense[:, :2]):
        with pytest.raises(AssertionError, match=REFUSED):
            assert_dense(dense, view)


def test_activation(draw: Callable[..., Tensor]) -> None:
    with pytest.raises(AssertionError, match=REFUSED):
        silu_mul(gapped(draw(2, 8)))


def test_gated_rows(draw: Callable[..., Tensor]) -> None:
    tile = RowTile(block_o=16, block_i=64, block_t=8, warps=2, stages=2)
    rows = ScaledRows(x_TI=draw(2, 64), square_TG=gapped(draw(2, 1)))
    with pytest.raises(AssertionError, match=REFUSED):
        gated_rows(rows, draw(16, 64), tile=tile, out_TU=draw(2, 8), eps=1e-5)


def test_prefill_attention(device: str, draw: Callable[..., Tensor]) -> None:
    one = torch.ones(2, dtype=torch.int64, device=device)
    plan = {"table_PM": torch.zeros(2, 8, device=device).long(), "row_B": one, "prefix_B": one}
    bounds = torch.tensor([0, 1, 2], device=device)
    with pytest.raises(AssertionError, match=REFUSED):
        prefill_attention(
            draw(2, 4, 32), draw(5, 2, 32), draw(5, 2, 32), **plan, start_B1=gapped(bounds),
            longest=1,
        )  # fmt: skip


@pytest.mark.parametrize("number", range(3))
def test_truncate(number: int, device: str) -> None:
    filters = [torch.zeros(2, device=device).long(), *torch.ones(2, 2, device=device)]
    filters[number] = gapped(filters[number])
    with pytest.raises(AssertionError, match=REFUSED):
        truncate(torch.full((2, 4), 0.25, device=device), *filters)
