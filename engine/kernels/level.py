"""level: the children of a frontier and the best of them, in one launch; its reference is
engine.tree.next_level.

B requests   K branching   C = K*K children of a request
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.tree.levels import Frontier, NextLevel

TILE = 32
"""Children that are compared with all others at once."""


@triton.jit
def _scores(p_ptr, parent_score_ptr, c_C, K: tl.constexpr):
    """Cumulative probabilities of children, -1 behind the last; a NaN of the draft counts as 0."""
    here_C = c_C < K * K
    p_C = tl.load(p_ptr + c_C, mask=here_C, other=0.0).to(tl.float32)
    p_C = tl.where(p_C == p_C, tl.minimum(tl.maximum(p_C, 0.0), 1.0), 0.0)
    return tl.where(
        here_C, tl.load(parent_score_ptr + c_C // K, mask=here_C, other=0.0) * p_C, -1.0
    )


@triton.jit
def _next_level(
    p_ptr, token_ptr, parent_score_ptr, score_ptr, flat_ptr, best_token_ptr, best_score_ptr,
    row_ptr, first_flat, K: tl.constexpr, BLOCK_C: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    request = tl.program_id(0).to(tl.int64)
    p_ptr += request * K * K
    parent_score_ptr += request * K
    c_C = tl.arange(0, BLOCK_C)
    score_C = _scores(p_ptr, parent_score_ptr, c_C, K)
    rank_C = tl.zeros((BLOCK_C,), tl.int32)
    for start in range(0, K * K, TILE):
        o_O = start + tl.arange(0, TILE)
        score_O = _scores(p_ptr, parent_score_ptr, o_O, K)
        ties = (score_O[None, :] == score_C[:, None]) & (o_O[None, :] < c_C[:, None])
        rank_C += tl.sum(((score_O[None, :] > score_C[:, None]) | ties).to(tl.int32), axis=1)
    here_C = c_C < K * K
    tl.store(score_ptr + request * K * K + c_C, score_C, mask=here_C)
    # The best K write themselves where their rank says.
    best_C = here_C & (rank_C < K)
    at_C = request * K + rank_C
    token_C = tl.load(token_ptr + request * K * K + c_C, mask=best_C, other=0)
    tl.store(best_token_ptr + at_C, token_C, mask=best_C)
    tl.store(best_score_ptr + at_C, score_C, mask=best_C)
    tl.store(flat_ptr + at_C, (c_C + first_flat).to(tl.int64), mask=best_C)
    tl.store(row_ptr + at_C, request * K + c_C // K, mask=best_C)


def next_level(
    frontier: Frontier, topk_p: Tensor, topk_tokens: Tensor, *, step: int
) -> tuple[NextLevel, Frontier]:
    """Probabilities f32 and target ids i64, both (B*K, K), as in the reference."""
    rows, topk = frontier.tokens.shape
    device = topk_tokens.device
    token_BC = topk_tokens.reshape(rows, topk * topk).contiguous()
    score_BC = torch.empty(rows, topk * topk, dtype=torch.float32, device=device)
    flat_BK, best_BK, row_BK = (
        torch.empty(rows, topk, dtype=torch.int64, device=device) for _ in range(3)
    )
    best_score_BK = torch.empty(rows, topk, dtype=torch.float32, device=device)
    if rows:
        _next_level[rows,](
            topk_p.contiguous(), token_BC, frontier.scores.contiguous(), score_BC, flat_BK,
            best_BK, best_score_BK, row_BK, topk + (step - 1) * topk * topk, topk,
            BLOCK_C=triton.next_power_of_2(topk * topk), TILE=TILE,
        )  # fmt: skip
    level = NextLevel(scores=score_BC, tokens=token_BC, parents=flat_BK)
    return level, Frontier(tokens=best_BK, scores=best_score_BK, parent_rows=row_BK.flatten())
