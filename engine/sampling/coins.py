"""Seeded coins: uniform numbers that depend on request seed and position, never on the batch.

The generator is Philox4x32-10, counter based: Salmon, Moraes, Dror, Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC 2011. The key is the request's seed; the counter is (lane,
position, stream), so that the coin of a tree node is the same on every device, in every batch
and after every preemption.

B requests   L lanes
"""

from enum import IntEnum

import torch
from jaxtyping import Int64
from torch import Tensor

from shapecheck import contract

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


class Stream(IntEnum):
    """What a coin is for: coins of two streams are independent."""

    TARGET = 0  # a token drawn from the target's law without a draft
    DRAFT = 1  # children drawn by the draft
    ACCEPT = 2  # acceptance of one tree node
    FINAL = 3  # the token after the accepted path


@contract
def coins(
    seeds: Int64[Tensor, "tokens"],
    positions: Int64[Tensor, "tokens"],
    stream: Stream,
    *,
    lanes: int,
    first_lane: int = 0,
) -> Tensor:
    """`lanes` independent uniform numbers in [0, 1) per row, multiples of 2**-53: f64 (B, L).

    A row is a request, or one token of it where every node of a tree is drawn for.
    `positions` is the position of the iteration's root (of the token drawn, for TARGET): it grows
    with every iteration, so no coin is ever used twice. Lanes: the node's local index for ACCEPT,
    the candidate's flat index (engine.tree.levels) for DRAFT, 0 else.
    """
    # 53 bits: with 24, tokens of a large vocabulary below 6e-8 could not be drawn in proportion.
    lane_L = torch.arange(first_lane, first_lane + lanes, device=seeds.device)
    shape = (len(seeds), lanes)
    position_B1 = positions.unsqueeze(1)
    counter = (
        lane_L.expand(shape),
        (position_B1 & _WORD).expand(shape),
        (position_B1 >> 32).expand(shape),
        torch.full(shape, int(stream), device=seeds.device),
    )
    seed_B1 = seeds.unsqueeze(1)
    high, low, _, _ = philox(counter, (seed_B1 & _WORD, (seed_B1 >> 32) & _WORD))
    return ((high >> 5) * 2**26 + (low >> 6)).double() * 2.0**-53


def philox(
    counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Philox4x32-10 of 32-bit words held in i64 tensors; counter and key broadcast."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        high0, low0 = _multiply(_MULTIPLIERS[0], c0)
        high1, low1 = _multiply(_MULTIPLIERS[1], c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return c0, c1, c2, c3


def _multiply(factor: int, word: Tensor) -> tuple[Tensor, Tensor]:
    """High and low word of the 64-bit product, by halves: int64 has no room for it unsigned."""
    by_low = (word & 0xFFFF) * factor
    upper = (word >> 16) * factor + (by_low >> 16)
    return upper >> 16, ((upper & 0xFFFF) << 16) | (by_low & 0xFFFF)
