"""mask_words: the tail mask of each row as one word.

B requests   R rows per request   T = B * R   W tail slots of a request
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _mask_words(
    mask_ptr, word_ptr, tokens, W: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_W: tl.constexpr
):
    t_T = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    w_W = tl.arange(0, BLOCK_W)
    here_TW = (t_T[:, None] < tokens) & (w_W[None, :] < W)
    bit_TW = tl.load(mask_ptr + t_T[:, None] * W + w_W[None, :], mask=here_TW, other=0)
    word_T = tl.sum((bit_TW != 0).to(tl.int64) << w_W[None, :].to(tl.int64), axis=1)
    tl.store(word_ptr + t_T, word_T, mask=t_T < tokens)


def mask_words(mask_BRW: Tensor) -> Tensor:
    """The mask of each row as one word, i64 (B * R,): bit w is its tail slot w; W is at most 64."""
    tail = mask_BRW.shape[-1]
    assert tail <= 64, "a word has 64 bits"
    mask_TW = mask_BRW.reshape(-1, tail).contiguous()
    tokens = len(mask_TW)
    word_T = torch.empty(tokens, dtype=torch.int64, device=mask_BRW.device)
    if tokens:
        _mask_words[triton.cdiv(tokens, 32),](
            mask_TW, word_T, tokens, tail, BLOCK_T=32, BLOCK_W=triton.next_power_of_2(tail)
        )
    return word_T


def mask_words_reference(mask_BRW: Tensor) -> Tensor:
    """The same in torch."""
    assert mask_BRW.shape[-1] <= 64, "a word has 64 bits"
    bit_W = torch.arange(mask_BRW.shape[-1], device=mask_BRW.device)
    return (mask_BRW.long() << bit_W).sum(-1).flatten()
