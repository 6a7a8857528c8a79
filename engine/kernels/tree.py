"""tree: choice of the verified nodes and their structure, in one launch; its reference is
engine.tree.build_tree.

B requests   N verify width, root included   C candidates of all draft steps   K branching
G = 1 + (S-1)*K nodes ever expanded   S draft depth
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.tree.build import BuiltTree
from engine.tree.levels import Level
from engine.tree.select import check_enough
from engine.tree.structure import TreeStructure

TILE = 32
"""Candidates that are compared with all others at once."""


@triton.jit
def _choose(score_ptr, chosen_ptr, C: tl.constexpr, N: tl.constexpr, BLOCK_C: tl.constexpr,
            TILE: tl.constexpr):  # fmt: skip
    """The N-1 best candidates, ascending, are in chosen_ptr; equal scores keep the lower index."""
    c_C = tl.arange(0, BLOCK_C)
    score_C = tl.load(score_ptr + c_C, mask=c_C < C, other=-1.0)
    taken = tl.full((), 0, tl.int32)
    for start in range(0, C, TILE):
        o_O = start + tl.arange(0, TILE)
        here_O = o_O < C
        score_O = tl.load(score_ptr + o_O, mask=here_O, other=-1.0)
        ties = (score_C[None, :] == score_O[:, None]) & (c_C[None, :] < o_O[:, None])
        before = (score_C[None, :] > score_O[:, None]) | ties
        best_O = here_O & (tl.sum(before.to(tl.int32), axis=1) < N - 1)
        count_O = best_O.to(tl.int32)
        tl.store(chosen_ptr + taken + tl.cumsum(count_O, axis=0) - 1, o_O.to(tl.int64), mask=best_O)
        taken += tl.sum(count_O, axis=0)
    tl.debug_barrier()


@triton.jit
def _build_tree(
    score_ptr, token_ptr, parent_ptr, bonus_ptr, len_ptr, chosen_ptr, draft_ptr, mask_ptr,
    position_ptr, child_ptr, sibling_ptr, column_ptr, N: tl.constexpr, C: tl.constexpr,
    K: tl.constexpr, G: tl.constexpr, S: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr, TILE: tl.constexpr, DRAWN: tl.constexpr,
):  # fmt: skip
    request = tl.program_id(0).to(tl.int64)
    chosen_ptr += request * (N - 1)
    parent_ptr += request * G
    _choose(score_ptr + request * C, chosen_ptr, C, N, BLOCK_C, TILE)
    n_N = tl.arange(0, BLOCK_N)
    here_N = n_N < N
    drawn_N = here_N & (n_N > 0)
    # A flat index per node: -1 for the root, beyond every candidate behind the last node.
    flat_N = tl.load(chosen_ptr + n_N - 1, mask=drawn_N, other=-1)
    flat_N = tl.where(here_N, flat_N, C)
    token_N = tl.load(token_ptr + request * C + flat_N, mask=drawn_N, other=0)
    token_N = tl.where(n_N == 0, tl.load(bonus_ptr + request), token_N)
    tl.store(draft_ptr + request * N + n_N, token_N, mask=here_N)
    above_N = tl.load(parent_ptr + flat_N // K, mask=drawn_N, other=-1)
    # Nodes stand in the order of their flat index, so a node's place is what is below it.
    parent_N = tl.sum((flat_N[None, :] < above_N[:, None]).to(tl.int32), axis=1)
    m_M = n_N[None, :]
    sees_NM = n_N[:, None] == m_M
    ancestor_N = parent_N
    for _ in range(S):
        sees_NM = sees_NM | (ancestor_N[:, None] == m_M)
        ancestor_N = tl.sum(tl.where(ancestor_N[:, None] == m_M, parent_N[None, :], 0), axis=1)
    both_NM = here_N[:, None] & (m_M < N)
    at_NM = (request * N + n_N[:, None]) * N + m_M
    tl.store(mask_ptr + at_NM, sees_NM, mask=both_NM)
    depth_N = tl.sum((sees_NM & both_NM).to(tl.int32), axis=1) - 1
    at_N = request * N + n_N
    tl.store(position_ptr + at_N, tl.load(len_ptr + request) + depth_N, mask=here_N)
    below_NM = (parent_N[None, :] == n_N[:, None]) & (m_M > 0) & (m_M < N)
    beside_NM = (parent_N[None, :] == parent_N[:, None]) & (m_M > n_N[:, None]) & (m_M < N)
    child_N = tl.min(tl.where(below_NM, m_M, N), axis=1)
    sibling_N = tl.min(tl.where(beside_NM & (n_N[:, None] > 0), m_M, N), axis=1)
    tl.store(child_ptr + at_N, tl.where(child_N < N, child_N, -1).to(tl.int64), mask=here_N)
    tl.store(sibling_ptr + at_N, tl.where(sibling_N < N, sibling_N, -1).to(tl.int64), mask=here_N)
    if DRAWN:
        column_N = tl.zeros((BLOCK_N,), tl.int64)
        for g in range(G):
            column_N = tl.where(flat_N == tl.load(parent_ptr + g), g, column_N)
        tl.store(column_ptr + at_N, column_N, mask=here_N)


def build_tree(
    levels: Sequence[Level],
    bonus_tokens: Tensor,
    seq_lens: Tensor,
    *,
    topk: int,
    num_draft_tokens: int,
    drawn: bool,
) -> BuiltTree:
    """Scores f32, everything else i64, as in the reference."""
    check_enough(levels, num_draft_tokens)
    score_BC = torch.cat([level.scores for level in levels], dim=1)
    token_BC = torch.cat([level.tokens for level in levels], dim=1)
    # With one step only the root was expanded: the first column of the first level's parents.
    opened = [level.parents for level in levels[:-1]] or [levels[0].parents[:, :1]]
    parent_BG = torch.cat(opened, dim=1)
    rows, candidates = score_BC.shape
    width, device = num_draft_tokens, score_BC.device

    def new(*sizes: int) -> Tensor:
        return torch.empty(rows, *sizes, dtype=torch.int64, device=device)

    structure = TreeStructure(
        tree_mask=torch.empty(rows, width, width, dtype=torch.bool, device=device),
        positions=new(width),
        next_child=new(width),
        next_sibling=new(width),
    )
    tree = BuiltTree(
        draft_tokens=new(width), structure=structure, law_columns=new(width) if drawn else None
    )
    if rows:
        _build_tree[rows,](
            score_BC, token_BC, parent_BG, bonus_tokens.contiguous(), seq_lens.contiguous(),
            new(width - 1), tree.draft_tokens, structure.tree_mask, structure.positions,
            structure.next_child, structure.next_sibling, tree.law_columns, width, candidates, topk,
            parent_BG.shape[1], len(levels), BLOCK_N=triton.next_power_of_2(width),
            BLOCK_C=triton.next_power_of_2(candidates), TILE=TILE, DRAWN=drawn, num_warps=8,
        )  # fmt: skip
    return tree
