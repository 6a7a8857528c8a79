"""Units: what whole numbers promise that floats do not."""

import pytest
import torch

from engine.sampling.draw import draw, draw_units
from engine.sampling.units import WHOLE, units

LAST_COIN = 1 - 2.0**-53


def test_a_sum_has_no_order():
    law = torch.rand(3, 5000, generator=torch.Generator().manual_seed(1)).softmax(dim=1)
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(2))
    counts = units(law)
    assert torch.equal(counts.sum(dim=1), counts[:, order].sum(dim=1))
    assert torch.allclose(counts.sum(dim=1).double() / WHOLE, torch.ones(3).double(), atol=1e-6)
    assert torch.equal(counts.double() / WHOLE, law.double())


def test_what_is_no_probability_counts_as_none_or_one():
    odd = torch.tensor([0.0, -0.5, float("nan"), float("-inf"), float("inf"), 1.0, 2.0**-62])
    assert units(odd).tolist() == [0, 0, 0, 0, WHOLE, WHOLE, 0]


@pytest.mark.parametrize("total", [1, 2, 3, 2**53 + 1, 2**60 + 129, 2**61 - 1, 2**62 - 1])
def test_no_coin_reaches_past_the_last_unit(total):
    """Counts beyond 2**53 round when they become floats, some of them upwards."""
    law = torch.tensor([[0, total, 0]])
    for coin in (0.0, 0.5, 1 - 2.0**-24, LAST_COIN):
        assert draw_units(law, torch.tensor([coin]).double()).tolist() == [1]


def test_a_row_without_weight_gives_the_last_token():
    rows = torch.tensor([[0.0, 0.0, 0.0], [float("nan")] * 3])
    assert draw(rows, torch.tensor([0.0, LAST_COIN]).double()).tolist() == [2, 2]
