"""Coins: published known answers, range, and independence of the batch."""

import pytest
import torch

from engine.sampling import Stream, coins
from engine.sampling.coins import philox

# Known-answer vectors of philox4x32-10 from the Random123 distribution: counter, key, output.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "wanted"), KNOWN)
def test_known_answers(counter, key, wanted):
    words = philox(
        tuple(torch.tensor([word]) for word in counter), tuple(torch.tensor([w]) for w in key)
    )
    assert tuple(int(word) for word in words) == wanted


def test_a_coin_depends_on_seed_position_stream_and_lane_alone():
    seeds, positions = torch.tensor([3, 2**62 + 5, 9]), torch.tensor([10, 0, 2**33])
    batch = coins(seeds, positions, Stream.ACCEPT, lanes=6)
    for row in range(3):
        one = slice(row, row + 1)
        alone = coins(seeds[one], positions[one], Stream.ACCEPT, lanes=2, first_lane=4)
        assert torch.equal(alone[0], batch[row, 4:])
    shuffled = coins(seeds.flip(0), positions.flip(0), Stream.ACCEPT, lanes=6)
    assert torch.equal(shuffled.flip(0), batch)


def test_coins_are_doubles_in_the_unit_interval_and_all_different():
    table = torch.cat(
        [coins(torch.arange(50), torch.full((50,), p), s, lanes=20) for s in Stream for p in (0, 1)]
    )
    assert table.dtype == torch.float64
    assert float(table.min()) >= 0.0
    assert float(table.max()) < 1.0
    assert len(table.flatten().unique()) == table.numel()
    # More than 24 bits are in use: a float32 would lose some.
    assert bool((table.float().double() != table).any())


def test_every_bit_of_seed_and_position_counts():
    bits = 2 ** torch.arange(63)
    zero = torch.zeros(63, dtype=torch.int64)
    for seeds, positions in ((bits, zero), (zero, bits)):
        assert len(coins(seeds, positions, Stream.DRAFT, lanes=1).unique()) == 63


def test_no_request_no_coin():
    none = torch.empty(0, dtype=torch.int64)
    assert coins(none, none, Stream.DRAFT, lanes=4).shape == (0, 4)
