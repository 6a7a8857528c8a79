"""coins: the seeded coins of a batch in one launch; its reference is engine.sampling.coins.

B rows   L lanes
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.sampling.coins import Stream

BLOCK = 256


@triton.jit
def _coins(
    seed_ptr, position_ptr, coin_ptr, first_lane, count, STREAM: tl.constexpr, L: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    i_I = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here_I = i_I < count
    word: tl.constexpr = 0xFFFFFFFF
    seed_I = tl.load(seed_ptr + i_I // L, mask=here_I, other=0)
    position_I = tl.load(position_ptr + i_I // L, mask=here_I, other=0)
    # Philox4x32-10 on words held in 64 bits, as in the reference.
    k0_I, k1_I = (seed_I & word).to(tl.uint64), ((seed_I >> 32) & word).to(tl.uint64)
    c0_I = (i_I % L + first_lane).to(tl.uint64)
    c1_I, c2_I = (position_I & word).to(tl.uint64), ((position_I >> 32) & word).to(tl.uint64)
    c3_I = tl.full((BLOCK,), STREAM, tl.uint64)
    for _ in tl.static_range(10):
        product0_I, product1_I = c0_I * 0xD2511F53, c2_I * 0xCD9E8D57
        c0_I, c1_I = (product1_I >> 32) ^ c1_I ^ k0_I, product1_I & word
        c2_I, c3_I = (product0_I >> 32) ^ c3_I ^ k1_I, product0_I & word
        k0_I, k1_I = (k0_I + 0x9E3779B9) & word, (k1_I + 0xBB67AE85) & word
    bits_I = ((c0_I >> 5) << 26) + (c1_I >> 6)
    tl.store(coin_ptr + i_I, bits_I.to(tl.int64).to(tl.float64) * 2.0**-53, mask=here_I)


def coins(
    seeds: Tensor, positions: Tensor, stream: Stream, *, lanes: int, first_lane: int = 0
) -> Tensor:
    """(B, L) f64 in [0, 1) from i64 seeds (B,) and positions (B,): the reference's, bit for bit."""
    coin_BL = torch.empty(len(seeds), lanes, dtype=torch.float64, device=seeds.device)
    if coin_BL.numel():
        _coins[triton.cdiv(coin_BL.numel(), BLOCK),](
            seeds.contiguous(), positions.contiguous(), coin_BL, first_lane,
            coin_BL.numel(), int(stream), lanes, BLOCK=BLOCK,
        )  # fmt: skip
    return coin_BL
