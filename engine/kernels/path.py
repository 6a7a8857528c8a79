"""path: what commit gathers and reorders, in one launch; its reference is engine.tree.keep_path.

B requests   N verify width, root included   D width of the accept table   X width fed to the draft
P rows and M columns of the request table
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.tree.path import KeptPath


@triton.jit
def _keep_path(
    table_ptr, row_ptr, len_ptr, slot_ptr, predict_ptr, path_ptr, count_ptr, hidden_ptr, id_ptr,
    position_ptr, out_ptr, select_ptr, new_len_ptr, emitted_ptr, M, request_stride, node_stride,
    N: tl.constexpr, D: tl.constexpr, X: tl.constexpr, SHIFT: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_X: tl.constexpr,
):  # fmt: skip
    request = tl.program_id(1).to(tl.int64)
    rank = tl.program_id(0)
    n_N, d_D = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    length = tl.load(len_ptr + request)
    count = tl.load(count_ptr + request)
    path_D = tl.load(path_ptr + request * D + d_D, mask=d_D < D, other=-1)
    node = tl.max(tl.where(d_D == rank, path_D, -1), axis=0)
    node = tl.maximum(node, 0)
    real = rank < count
    token = tl.load(predict_ptr + request * N + node)
    if rank < D:
        tl.store(emitted_ptr + request * D + rank, tl.where(real & (rank < N), token, -1))
    if rank < N:
        at = request * N + rank
        tl.store(id_ptr + at, tl.where(real, token, 0))
        tl.store(position_ptr + at, tl.where(real, length + (1 - SHIFT) + rank, 0))
        # Slots of kept nodes come first, in node order, then those of the others.
        kept_N = tl.sum((path_D[None, :] == n_N[:, None]).to(tl.int32), axis=1) > 0
        here_N = n_N < N
        kept = tl.sum((kept_N & here_N).to(tl.int32), axis=0)
        first_N = tl.cumsum(kept_N.to(tl.int32), axis=0) - 1
        place_N = tl.where(kept_N, first_N, kept + n_N - first_N - 1)
        source = tl.sum(tl.where(here_N & (place_N == rank), n_N, 0), axis=0)
        slot = tl.load(slot_ptr + request * N + source)
        row = tl.load(row_ptr + request)
        tl.store(table_ptr + row * M + length + rank, slot)
        for start in tl.static_range(0, X, BLOCK_X):
            x_X = start + tl.arange(0, BLOCK_X)
            from_ptr = hidden_ptr + request * request_stride + node * node_stride
            state_X = tl.load(from_ptr + x_X, mask=x_X < X, other=0.0)
            tl.store(out_ptr + at * X + x_X, state_X, mask=x_X < X)
    if rank == 0:
        tl.store(select_ptr + request, request * N + count - 1)
        tl.store(new_len_ptr + request, length + count)


def keep_path(
    slots_PM: Tensor,
    *,
    req_rows_index: Tensor,
    seq_lens: Tensor,
    slots: Tensor,
    predict: Tensor,
    accept_index: Tensor,
    accept_lens: Tensor,
    hidden_states: Tensor | None,
    shift: int,
) -> KeptPath:
    """Ids, slots and lengths i64, accept_lens (B,) i32, hidden (B, N, X) of any float type."""
    requests, width = slots.shape
    depth, device = accept_index.shape[1], slots.device
    assert slots_PM.is_contiguous(), "the request table is one piece"

    def new(*sizes: int) -> Tensor:
        return torch.empty(sizes, dtype=torch.int64, device=device)

    gathered, hidden_width = None, 0
    if hidden_states is not None:
        hidden_width = hidden_states.shape[2]
        if hidden_states.stride(2) != 1:
            hidden_states = hidden_states.contiguous()
        gathered = hidden_states.new_empty(requests * width, hidden_width)
    path = KeptPath(
        input_ids=new(requests * width),
        positions=new(requests * width),
        hidden_states=gathered,
        select_index=new(requests),
        seq_lens=new(requests),
        emitted=new(requests, depth),
    )
    if requests:
        request_stride, node_stride, _ = (
            (0, 0, 0) if hidden_states is None else hidden_states.stride()
        )
        _keep_path[max(width, depth), requests](
            slots_PM, req_rows_index.contiguous(), seq_lens.contiguous(), slots.contiguous(),
            predict.contiguous(), accept_index.contiguous(), accept_lens.contiguous(),
            hidden_states, path.input_ids, path.positions, gathered, path.select_index,
            path.seq_lens, path.emitted, slots_PM.shape[1], request_stride, node_stride, width,
            depth, hidden_width, SHIFT=shift, BLOCK_N=triton.next_power_of_2(width),
            BLOCK_D=triton.next_power_of_2(depth),
            BLOCK_X=min(4096, triton.next_power_of_2(max(hidden_width, 1))),
        )  # fmt: skip
    return path
