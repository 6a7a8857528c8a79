"""activation: silu(gate) * up of whole rows, for forwards too wide for the fused linear kernels.

T tokens   U feed-forward width
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import assert_dense, release_successor, wait_for_producers

BLOCK_U = 1024


@triton.jit
def _silu_mul(x_ptr, y_ptr, U: tl.constexpr, BLOCK_U: tl.constexpr, CHAINED: tl.constexpr):
    release_successor(CHAINED)
    wait_for_producers(CHAINED)
    token = tl.program_id(0).to(tl.int64)
    u_U = tl.program_id(1) * BLOCK_U + tl.arange(0, BLOCK_U)
    here_U = u_U < U
    gate_ptr = x_ptr + token * 2 * U + u_U
    gate_U = tl.load(gate_ptr, mask=here_U, other=0.0).to(tl.float32)
    up_U = tl.load(gate_ptr + U, mask=here_U, other=0.0).to(tl.float32)
    act_U = gate_U / (1.0 + tl.exp(-gate_U)) * up_U
    tl.store(y_ptr + token * U + u_U, act_U.to(y_ptr.dtype.element_ty), mask=here_U)


def silu_mul(x_TO: Tensor, *, chained: bool = False) -> Tensor:
    """Returns silu of the first half of each row times its second half, (T, 2U) -> (T, U)."""
    tokens, width = x_TO.shape[0], x_TO.shape[1] // 2
    assert_dense(x_TO)
    y_TU = x_TO.new_empty(tokens, width)
    if tokens:
        _silu_mul[tokens, triton.cdiv(width, BLOCK_U)](
            x_TO, y_TU, width, BLOCK_U=BLOCK_U, CHAINED=chained, launch_pdl=chained
        )
    return y_TU


def silu_mul_reference(x_TO: Tensor) -> Tensor:
    """The same in torch."""
    gate_TU, up_TU = x_TO.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate_TU) * up_TU
