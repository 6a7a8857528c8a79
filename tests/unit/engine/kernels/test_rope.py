"""rotate_store against torch, with and without head norms."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.kernels.rope import rotate_reference, rotate_store


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("parts", [None, 3])
@pytest.mark.parametrize("width", [32, 24])
def test_rotation_and_slots(
    normed: bool,
    parts: int | None,
    width: int,
    device: str,
    draw: Callable[..., Tensor],
    assert_close: Callable[[Tensor, Tensor], None],
) -> None:
    x = draw(5, 4 + 2 * 2, width) if parts is None else draw(parts, 5, 4 + 2 * 2, width).float()
    gains = (draw(width), draw(width)) if normed else None
    angles = torch.outer(torch.arange(9.0), 10.0 ** -torch.linspace(0, 2, width // 2)).to(device)
    positions = torch.tensor([8, 0, 3, 3, 5], device=device)
    slots = torch.tensor([2, 9, 4, 7, 1], device=device)
    keys, values = draw(10, 2, width), draw(10, 2, width)
    untouched = keys[[0, 3, 5, 6, 8]].clone()
    tables = {"cos_MF": angles.cos(), "sin_MF": angles.sin(), "position_T": positions}
    query = rotate_store(
        x, **tables, slot_T=slots, key_ZCE=keys, value_ZCE=values, gains=gains, eps=1e-5
    )
    wide = None if gains is None else (gains[0].double(), gains[1].double())
    whole = x.double() if parts is None else x.double().sum(0)
    q, k, v = rotate_reference(whole, **tables, kv_heads=2, gains=wide, eps=1e-5)
    assert_close(query, q)
    assert_close(keys[slots], k)
    assert_close(values[slots], v)
    assert torch.equal(keys[[0, 3, 5, 6, 8]], untouched)
