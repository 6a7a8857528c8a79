"""embedding: one row of the embedding table per token; the unchained head of every forward.

T tokens   V vocabulary   H hidden width   G programs a row
"""

import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense, overlaps, release_successor
from engine.kernels.row_tile import ScaledRows

BLOCK_H = 1024
"""Columns of one program; an embedded row enters its first norm in ceil(H / 1024) parts."""


@triton.jit
def _embed(
    id_ptr,
    table_ptr,
    gain_ptr,
    y_ptr,
    next_x_ptr,
    next_square_ptr,
    H: tl.constexpr,
    BLOCK_H: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    release_successor(OVERLAP)
    token = tl.program_id(0)
    h_H = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    here_H = h_H < H
    row = tl.load(id_ptr + token).to(tl.int64)
    value_H = tl.load(table_ptr + row * H + h_H, mask=here_H, other=0.0)
    wide_H = value_H.to(tl.float32)
    next_H = wide_H * tl.load(gain_ptr + h_H, mask=here_H, other=0.0).to(tl.float32)
    at_H = token.to(tl.int64) * H + h_H
    tl.store(y_ptr + at_H, value_H, mask=here_H)
    tl.store(next_x_ptr + at_H, next_H.to(next_x_ptr.dtype.element_ty), mask=here_H)
    at = token * tl.num_programs(1) + tl.program_id(1)
    tl.store(next_square_ptr + at, tl.sum(wide_H * wide_H, axis=0))


def embed_rows(
    id_T: Tensor, table_VH: Tensor, gain_H: Tensor, *, out_TH: Tensor, next_rows: ScaledRows
) -> Tensor:
    """Copies the table's row of each id into out_TH and next_rows, after all earlier work."""
    tokens, width = out_TH.shape
    assert_dense(id_T, table_VH, out_TH)
    _embed[(tokens, triton.cdiv(width, BLOCK_H))](
        id_T, table_VH, gain_H, out_TH, next_rows.x_TI, next_rows.square_TG, width,
        BLOCK_H=BLOCK_H, OVERLAP=overlaps(),
    )  # fmt: skip
    return out_TH


def embed_rows_reference(id_T: Tensor, table_VH: Tensor) -> Tensor:
    """The same by indexing."""
    return table_VH[id_T]
