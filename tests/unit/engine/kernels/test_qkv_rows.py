"""qkv_rows against float64, and that it writes its slots of the pool and no others."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.qkv_rows import qkv_rows, qkv_rows_reference
from engine.kernels.row_tile import RowTile, ScaledRows

ONE = RowTile(block_o=8, block_i=32, block_t=1, warps=4, stages=2)
MANY = RowTile(block_o=16, block_i=64, block_t=8, warps=2, stages=2)


@pytest.mark.parametrize(("tile", "tokens"), [(ONE, 1), (MANY, 5)])
@pytest.mark.parametrize("biased", [False, True])
def test_rotation_and_slots(
    tile: RowTile,
    tokens: int,
    biased: bool,
    device: str,
    draw: Callable[..., Tensor],
    blank: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    heads, kv_heads, width, inputs = 4, 2, 32, 72
    weight = draw((heads + 2 * kv_heads) * width, inputs)
    bias = draw(weight.shape[0]) if biased else None
    x, gain = draw(tokens, inputs), draw(inputs)
    rows = ScaledRows(x_TI=x * gain, square_TG=x.float().pow(2).sum(-1, keepdim=True))
    angles = torch.outer(torch.arange(50.0), 10.0 ** -torch.linspace(0, 3, width // 2)).to(device)
    cos, sin = angles.cos(), angles.sin()
    positions = torch.randint(0, 50, (tokens,), generator=torch.Generator().manual_seed(1))
    positions = positions.to(device)
    slots = torch.randperm(20, generator=torch.Generator().manual_seed(2))[:tokens].to(device)
    keys, values = draw(20, kv_heads, width), draw(20, kv_heads, width)
    old_keys, old_values = keys.clone(), values.clone()
    query = qkv_rows(
        rows, weight, tile=tile, cos_MF=cos, sin_MF=sin, position_T=positions, slot_T=slots,
        out_TQE=blank(tokens, heads, width), key_ZCE=keys, value_ZCE=values, eps=1e-5, bias_O=bias,
    )  # fmt: skip
    q, k, v = qkv_rows_reference(
        x.double(), weight.double(), gain_I=gain.double(), eps=1e-5, cos_MF=cos, sin_MF=sin,
        position_T=positions, heads=heads, kv_heads=kv_heads,
        bias_O=None if bias is None else bias.double(),
    )  # fmt: skip
    assert_close(query, q)
    assert_close(keys[slots], k)
    assert_close(values[slots], v)
    others = torch.ones(20, dtype=torch.bool, device=device)
    others[slots] = False
    assert torch.equal(keys[others], old_keys[others])
    assert torch.equal(values[others], old_values[others])
