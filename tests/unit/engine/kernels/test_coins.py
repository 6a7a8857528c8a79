"""coins: bit for bit the reference's."""

import pytest
import torch

from engine import sampling
from engine.kernels.coins import coins
from engine.sampling import Stream


@pytest.mark.parametrize("stream", Stream)
@pytest.mark.parametrize(("lanes", "first_lane"), [(1, 0), (7, 3), (100, 2**31)])
def test_same_bits(stream: Stream, lanes: int, first_lane: int, device: str) -> None:
    seeds = torch.tensor([0, 1, 2**40 + 5, 2**63 - 1], device=device)
    positions = torch.tensor([0, 17, 2**31, 2**35 + 1], device=device)
    found = coins(seeds, positions, stream, lanes=lanes, first_lane=first_lane)
    wanted = sampling.coins(seeds, positions, stream, lanes=lanes, first_lane=first_lane)
    assert found.dtype == torch.float64
    assert torch.equal(found, wanted)


def test_no_rows(device: str) -> None:
    none = torch.zeros(0, dtype=torch.int64, device=device)
    assert coins(none, none, Stream.ACCEPT, lanes=3).shape == (0, 3)
