"""embedding: one row of the embedding table per token; the unchained head of every forward.

T tokens   V vocabulary   W hidden width   G programs a row
"""

import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import INTERPRETED, release_successor
from engine.kernels.row_tile import ScaledRows

BLOCK_W = 1024
"""Columns of one program; an embedded row enters its first norm in ceil(W / 1024) parts."""


@triton.jit
def _embed(
    id_ptr,
    table_ptr,
    gain_ptr,
    y_ptr,
    next_x_ptr,
    next_square_ptr,
    W: tl.constexpr,
    BLOCK_W: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    release_successor(OVERLAP)
    token = tl.program_id(0)
    w_W = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    here_W = w_W < W
    row = tl.load(id_ptr + token).to(tl.int64)
    value_W = tl.load(table_ptr + row * W + w_W, mask=here_W, other=0.0)
    wide_W = value_W.to(tl.float32)
    next_W = wide_W * tl.load(gain_ptr + w_W, mask=here_W, other=0.0).to(tl.float32)
    at_W = token.to(tl.int64) * W + w_W
    tl.store(y_ptr + at_W, value_W, mask=here_W)
    tl.store(next_x_ptr + at_W, next_W.to(next_x_ptr.dtype.element_ty), mask=here_W)
    at = token * tl.num_programs(1) + tl.program_id(1)
    tl.store(next_square_ptr + at, tl.sum(wide_W * wide_W, axis=0))


def embed_rows(
    id_T: Tensor, table_VW: Tensor, gain_W: Tensor, *, out_TW: Tensor, next_rows: ScaledRows
) -> Tensor:
    """Copies the table's row of each id into out_TW and next_rows, after all earlier work."""
    tokens, width = out_TW.shape
    _embed[(tokens, triton.cdiv(width, BLOCK_W))](
        id_T, table_VW, gain_W, out_TW, next_rows.x_TI, next_rows.square_TG, width,
        BLOCK_W=BLOCK_W, OVERLAP=not INTERPRETED,
    )  # fmt: skip
    return out_TW


def embed_rows_reference(id_T: Tensor, table_VW: Tensor) -> Tensor:
    """The same by indexing."""
    return table_VW[id_T]
