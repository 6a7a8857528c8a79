"""read: every word of a tensor once, and nothing else; what reading can cost at the least.

W words   P programs
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _read(x_ptr, y_ptr, per_program, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * per_program
    total = tl.zeros((BLOCK,), tl.int32)
    for start in tl.range(0, per_program, BLOCK, num_stages=STAGES):
        total ^= tl.load(x_ptr + base + start + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.program_id(0), tl.xor_sum(total, axis=0))


def read_words(x_W: Tensor, *, out_P: Tensor, block: int, warps: int, stages: int) -> Tensor:
    """out_P, each element the exclusive or of a P-th of the words; both int32.

    W is a multiple of P * block.
    """
    words, programs = len(x_W), len(out_P)
    assert words % (programs * block) == 0, f"{words} words in blocks of {programs} * {block}"
    _read[(programs,)](x_W, out_P, words // programs, BLOCK=block, STAGES=stages, num_warps=warps)
    return out_P
