"""topk: the K most probable tokens of each row and their probabilities, without sorting the row.

Two steps: every chunk of the vocabulary yields its K best and its share of the softmax sum; one
program a row merges them. Equal logits keep the lower id, as argmax does.

T rows   V vocabulary   K candidates   N chunks
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import release_successor, wait_for_producers

BLOCK_V = 2048


@triton.jit
def _best(value_N, id_N, none):
    """Returns the largest value and the lowest id that has it."""
    top = tl.max(value_N, axis=0)
    return top, tl.min(tl.where(value_N == top, id_N, none), axis=0)


@triton.jit
def _chunk_best(
    logit_ptr, value_ptr, id_ptr, top_ptr, sum_ptr, V: tl.constexpr, K: tl.constexpr,
    BLOCK_V: tl.constexpr, CHAINED: tl.constexpr,
):  # fmt: skip
    release_successor(CHAINED)
    chunk = tl.program_id(0)
    row = tl.program_id(1)
    v_V = chunk * BLOCK_V + tl.arange(0, BLOCK_V)
    wait_for_producers(CHAINED)
    logit_V = tl.load(logit_ptr + row.to(tl.int64) * V + v_V, mask=v_V < V, other=float("-inf"))
    logit_V = logit_V.to(tl.float32)
    at = row * tl.num_programs(0) + chunk
    top = tl.max(logit_V, axis=0)
    base = tl.where(top == float("-inf"), 0.0, top)
    tl.store(top_ptr + at, top)
    tl.store(sum_ptr + at, tl.sum(tl.exp(logit_V - base), axis=0))
    left_V = v_V < V
    for k in tl.static_range(K):
        value, best = _best(tl.where(left_V, logit_V, float("-inf")), tl.where(left_V, v_V, V), V)
        tl.store(value_ptr + at * K + k, value)
        tl.store(id_ptr + at * K + k, best)
        left_V &= v_V != best


@triton.jit
def _merge_best(
    value_ptr, id_ptr, top_ptr, sum_ptr, p_ptr, index_ptr, chunks, V: tl.constexpr,
    K: tl.constexpr, BLOCK_N: tl.constexpr, CHAINED: tl.constexpr,
):  # fmt: skip
    release_successor(CHAINED)
    row = tl.program_id(0)
    n_N = tl.arange(0, BLOCK_N)
    wait_for_producers(CHAINED)
    here_N = n_N < chunks
    top_N = tl.load(top_ptr + row * chunks + n_N, mask=here_N, other=float("-inf"))
    sum_N = tl.load(sum_ptr + row * chunks + n_N, mask=here_N, other=0.0)
    top = tl.max(top_N, axis=0)
    total = tl.sum(sum_N * tl.exp(tl.where(top_N == float("-inf"), top, top_N) - top), axis=0)
    at_N = row * chunks * K + n_N
    here_N = n_N < chunks * K
    value_N = tl.load(value_ptr + at_N, mask=here_N, other=float("-inf"))
    id_N = tl.load(id_ptr + at_N, mask=here_N, other=V)
    for k in tl.static_range(K):
        value, best = _best(value_N, id_N, V)
        tl.store(p_ptr + row * K + k, tl.exp(value - top) / total)
        tl.store(index_ptr + row * K + k, best.to(tl.int64))
        taken_N = id_N == best
        value_N = tl.where(taken_N, float("-inf"), value_N)
        id_N = tl.where(taken_N, V, id_N)


def topk_softmax(logits_TV: Tensor, k: int, *, chained: bool = False) -> tuple[Tensor, Tensor]:
    """Returns probabilities (T, K) f32 and ids (T, K) i64, most probable first; K is at most V."""
    tokens, vocab = logits_TV.shape
    assert k <= vocab, "there are no more candidates than tokens"
    chunks = triton.cdiv(vocab, BLOCK_V)
    device = logits_TV.device
    value_TNK = torch.empty(tokens, chunks, k, dtype=torch.float32, device=device)
    id_TNK = torch.empty(tokens, chunks, k, dtype=torch.int32, device=device)
    top_TN, sum_TN = (torch.empty(tokens, chunks, device=device) for _ in range(2))
    p_TK = torch.empty(tokens, k, dtype=torch.float32, device=device)
    index_TK = torch.empty(tokens, k, dtype=torch.int64, device=device)
    if tokens:
        _chunk_best[chunks, tokens](
            logits_TV, value_TNK, id_TNK, top_TN, sum_TN, vocab, k, BLOCK_V=BLOCK_V,
            CHAINED=chained, launch_pdl=chained, num_warps=8,
        )  # fmt: skip
        _merge_best[tokens,](
            value_TNK, id_TNK, top_TN, sum_TN, p_TK, index_TK, chunks, vocab, k,
            BLOCK_N=triton.next_power_of_2(chunks * k), CHAINED=chained, launch_pdl=chained,
        )  # fmt: skip
    return p_TK, index_TK


def choose_children(logits_RV: Tensor, *, topk: int) -> tuple[Tensor, Tensor]:
    """engine.sampling.choose_children: the candidates of every row of a frontier."""
    return topk_softmax(logits_RV.contiguous(), topk)


def topk_softmax_reference(logits_TV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same in torch, with a stable sort for equal logits."""
    index_TK = torch.sort(logits_TV, dim=-1, descending=True, stable=True).indices[:, :k]
    return torch.softmax(logits_TV.float(), dim=-1).gather(-1, index_TK), index_TK
