"""argmax: the token with the largest logit of every row; its reference is torch.argmax.

Two launches: every chunk of the vocabulary yields its largest, a program a row merges them.

R rows   V vocabulary   N chunks
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_V = 4096


@triton.jit
def _first_of_largest(value_N, id_N, here_N, none):
    """The largest value and the lowest id that has it; as in torch NaN is the largest."""
    value_N = tl.where(value_N != value_N, float("inf"), value_N)
    top = tl.max(tl.where(here_N, value_N, float("-inf")), axis=0)
    return top, tl.min(tl.where(here_N & (value_N == top), id_N, none), axis=0)


@triton.jit
def _chunk_argmax(logit_ptr, value_ptr, id_ptr, V: tl.constexpr, BLOCK_V: tl.constexpr):
    row = tl.program_id(1)
    v_V = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    here_V = v_V < V
    logit_V = tl.load(logit_ptr + row.to(tl.int64) * V + v_V, mask=here_V, other=float("-inf"))
    top, best = _first_of_largest(logit_V.to(tl.float32), v_V, here_V, V)
    at = row * tl.num_programs(0) + tl.program_id(0)
    tl.store(value_ptr + at, top)
    tl.store(id_ptr + at, best)


@triton.jit
def _merge_argmax(
    value_ptr, id_ptr, best_ptr, chunks, V: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    n_N = tl.arange(0, BLOCK_N)
    here_N = n_N < chunks
    value_N = tl.load(value_ptr + row * chunks + n_N, mask=here_N, other=float("-inf"))
    id_N = tl.load(id_ptr + row * chunks + n_N, mask=here_N, other=V)
    _, best = _first_of_largest(value_N, id_N, here_N, V)
    tl.store(best_ptr + row, best.to(tl.int64))


def argmax(logits: Tensor) -> Tensor:
    """The ids i64 (...,) of the largest logits (..., V); equal ones keep the lower id."""
    vocab = logits.shape[-1]
    logits_RV = logits.reshape(-1, vocab).contiguous()
    rows, device = len(logits_RV), logits.device
    chunks = triton.cdiv(vocab, BLOCK_V)
    value_RN = torch.empty(rows, chunks, device=device)
    id_RN = torch.empty(rows, chunks, dtype=torch.int32, device=device)
    best_R = torch.empty(rows, dtype=torch.int64, device=device)
    if rows:
        _chunk_argmax[chunks, rows](
            logits_RV, value_RN, id_RN, vocab, BLOCK_V=min(BLOCK_V, triton.next_power_of_2(vocab)),
            num_warps=8,
        )  # fmt: skip
        _merge_argmax[rows,](
            value_RN, id_RN, best_R, chunks, vocab, BLOCK_N=triton.next_power_of_2(chunks),
            num_warps=1,
        )  # fmt: skip
    return best_R.view(logits.shape[:-1])
