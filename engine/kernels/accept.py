"""accept: the greedy walk down a verify tree; its reference is engine.tree.accept_greedy.

B requests   N verify width, root included   D width of the accept table
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.tree.accept import Accepted


@triton.jit
def _accept(
    token_ptr, choice_ptr, mask_ptr, predict_ptr, path_ptr, len_ptr, N: tl.constexpr,
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    request = tl.program_id(0).to(tl.int64)
    n_N, d_D = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    here_N = n_N < N
    token_N = tl.load(token_ptr + request * N + n_N, mask=here_N, other=0)
    choice_N = tl.load(choice_ptr + request * N + n_N, mask=here_N, other=0)
    at_NM = (request * N + n_N[:, None]) * N + n_N[None, :]
    earlier_NM = here_N[:, None] & (n_N[None, :] < n_N[:, None])
    sees_NM = tl.load(mask_ptr + at_NM, mask=earlier_NM, other=0) != 0
    # Ancestors stand before a node, so its parent is the last of them.
    parent_N = tl.max(tl.where(sees_NM & earlier_NM, n_N[None, :], 0), axis=1)
    path_D = tl.where(d_D == 0, 0, -1).to(tl.int64)
    on_path_N = n_N == 0
    node = tl.full((), 0, tl.int32)
    length = tl.full((), 1, tl.int32)
    for depth in range(1, D):
        wanted = tl.sum(tl.where(n_N == node, choice_N, 0), axis=0)
        fits_N = here_N & (n_N > 0) & (parent_N == node) & (token_N == wanted)
        after = tl.min(tl.where(fits_N, n_N, N), axis=0)
        goes = (after < N) & (length == depth)
        node = tl.where(goes, after, node)
        on_path_N = on_path_N | (n_N == node)
        path_D = tl.where(goes & (d_D == depth), after.to(tl.int64), path_D)
        length += goes.to(tl.int32)
    tl.store(predict_ptr + request * N + n_N, tl.where(on_path_N, choice_N, 0), mask=here_N)
    tl.store(path_ptr + request * D + d_D, path_D, mask=d_D < D)
    tl.store(len_ptr + request, length)


def accept_greedy(
    draft_tokens: Tensor, target_predict: Tensor, tree_mask: Tensor, *, accept_width: int
) -> Accepted:
    """Tokens and the target's choices (B, N) i64, mask (B, N, N) bool, as in the reference."""
    rows, width = draft_tokens.shape
    device = draft_tokens.device
    accepted = Accepted(
        predict=torch.empty(rows, width, dtype=torch.int64, device=device),
        accept_index=torch.empty(rows, accept_width, dtype=torch.int64, device=device),
        accept_lens=torch.empty(rows, dtype=torch.int32, device=device),
    )
    if rows:
        _accept[rows,](
            draft_tokens.contiguous(), target_predict.contiguous(), tree_mask.contiguous(),
            accepted.predict, accepted.accept_index, accepted.accept_lens, width, accept_width,
            BLOCK_N=triton.next_power_of_2(width), BLOCK_D=triton.next_power_of_2(accept_width),
        )  # fmt: skip
    return accepted
