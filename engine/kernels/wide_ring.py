"""wide_ring: the product of wide_rows with a ring of shared memory a program, in Gluon.

The copy engine fills the ring, weights before the producer of the tokens is done, and keeps as much
on its way as a multiprocessor can hold: what a product loses beside its bytes is the time in which
too little is asked for. Needs 16-bit weights, Hopper's warpgroup matrix instructions and sizes that
divide; wide_rows is the portable version.

T tokens   I inputs (summed over)   O outputs (rows of the weight)   S parts of the inputs
"""

from dataclasses import dataclass

import torch
import triton
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from engine.kernels.launch import stream_release, stream_wait

# The names until Triton 3.6, and since.
load_block = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
barrier = getattr(gl, "barrier", None) or gl.thread_barrier

BLOCK_O = 64
"""Output rows that one matrix instruction of a warpgroup takes."""

MOST_TOKENS = 128
"""Tokens of the one tile of tokens."""

_LAYOUT = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RingTile:
    """How such a product is cut: inputs of a slot, parts, slots, output rows of a tile.

    Fewer rows than BLOCK_O are for a matrix that they divide evenly among multiprocessors; no
    memory is read for the rest.
    """

    block_i: int
    parts: int
    slots: int
    rows: int = BLOCK_O

    def fits(self, inputs: int, outputs: int) -> bool:
        """Whether a matrix divides into such tiles."""
        return inputs % self.block_i == 0 and outputs % self.rows == 0


@gluon.constexpr_function
def sum_layout(block_t):
    """The layout of sums (O, T)."""
    return gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, block_t, 16]
    )


@gluon.jit
def _copy_weights(
    w_desc, w_ring, ready, first, turn, count, SLOT_BYTES: gl.constexpr, BLOCK_I: gl.constexpr,
    SLOTS: gl.constexpr,
):  # fmt: skip
    """This turn's weights are on their way into their slot, which is ready once its tokens are
    there too.
    """
    slot, here = turn % SLOTS, turn < count
    mbarrier.expect(ready.index(slot), SLOT_BYTES, pred=here)
    load_block(
        w_desc, [gl.program_id(0), 0, (first + turn) * BLOCK_I], ready.index(slot),
        w_ring.index(slot), pred=here,
    )  # fmt: skip


@gluon.jit
def _copy_tokens(
    x_desc, x_ring, ready, first, turn, count, BLOCK_I: gl.constexpr, SLOTS: gl.constexpr
):
    """This turn's inputs of all tokens are on their way into their slot."""
    slot = turn % SLOTS
    load_block(
        x_desc, [0, 0, (first + turn) * BLOCK_I], ready.index(slot), x_ring.index(slot),
        pred=turn < count,
    )  # fmt: skip


@gluon.jit(do_not_specialize=["tokens", "second"])
def _wide_ring(
    w_desc,
    x_desc,
    bias_ptr,
    y_ptr,
    tokens,
    second,
    outputs,
    steps,
    BIAS: gl.constexpr,
    CHAINED: gl.constexpr,
    ROWS: gl.constexpr,
    BLOCK_O: gl.constexpr,
    BLOCK_I: gl.constexpr,
    BLOCK_T: gl.constexpr,
    SLOTS: gl.constexpr,
):
    stream_release(CHAINED)
    part = gl.program_id(1)
    first = part * steps // gl.num_programs(1)
    count = (part + 1) * steps // gl.num_programs(1) - first
    SLOT_BYTES: gl.constexpr = 2 * (BLOCK_O + BLOCK_T) * BLOCK_I
    w_ring = gl.allocate_shared_memory(w_desc.dtype, [SLOTS, 1, BLOCK_O, BLOCK_I], w_desc.layout)
    HALF: gl.constexpr = BLOCK_T // 2
    x_ring = gl.allocate_shared_memory(x_desc.dtype, [SLOTS, 2, HALF, BLOCK_I], x_desc.layout)
    ready = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for each in gl.static_range(SLOTS):
        mbarrier.init(ready.index(each), count=1)
    fence_async_shared()
    for each in gl.static_range(SLOTS - 1):
        _copy_weights(w_desc, w_ring, ready, first, each, count, SLOT_BYTES, BLOCK_I, SLOTS)
    stream_wait(CHAINED)
    for each in gl.static_range(SLOTS - 1):
        _copy_tokens(x_desc, x_ring, ready, first, each, count, BLOCK_I, SLOTS)
    layout: gl.constexpr = sum_layout(BLOCK_T)
    sum_OT = gl.zeros((BLOCK_O, BLOCK_T), gl.float32, layout)
    for turn in range(count):
        slot = turn % SLOTS
        mbarrier.wait(ready.index(slot), (turn // SLOTS) & 1)
        w_OI = w_ring.index(slot).reshape([BLOCK_O, BLOCK_I])
        x_IT = x_ring.index(slot).reshape([BLOCK_T, BLOCK_I]).permute((1, 0))
        sum_OT = warpgroup_mma(w_OI, x_IT, sum_OT, is_async=True)
        # The product before this one is done in every warp: its slot is free.
        sum_OT = warpgroup_mma_wait(1, deps=[sum_OT])
        barrier()
        ahead = turn + SLOTS - 1
        _copy_weights(w_desc, w_ring, ready, first, ahead, count, SLOT_BYTES, BLOCK_I, SLOTS)
        _copy_tokens(x_desc, x_ring, ready, first, ahead, count, BLOCK_I, SLOTS)
    sum_OT = warpgroup_mma_wait(0, deps=[sum_OT])
    own_O = gl.arange(0, BLOCK_O, gl.SliceLayout(1, layout))
    o_O = gl.program_id(0) * ROWS + own_O
    # The second half starts at a token that the first may have too: that one stores it.
    t_T = gl.arange(0, BLOCK_T, gl.SliceLayout(0, layout))
    token_T = gl.where(t_T < HALF, t_T, second + t_T - HALF)
    here_T = (token_T < tokens) & ((t_T < HALF) | (token_T >= HALF))
    if BIAS:
        bias_O = gl.load(bias_ptr + o_O, mask=o_O < outputs, other=0.0).to(gl.float32)
        sum_OT += gl.where(part == 0, bias_O, 0.0)[:, None]
    here_OT = (own_O < ROWS)[:, None] & here_T[None, :]
    at_OT = (part * tokens + token_T)[None, :].to(gl.int64) * outputs + o_O[:, None]
    gl.store(y_ptr + at_OT, sum_OT, mask=here_OT)


def wide_ring(
    x_TI: Tensor,
    weight_OI: Tensor,
    *,
    tile: RingTile,
    out_STO: Tensor,
    bias_O: Tensor | None,
    chained: bool,
) -> None:
    """wide_rows for a RingTile: dense tensors of one or more tokens, and a matrix that it fits."""
    tokens, inputs = x_TI.shape
    outputs = weight_OI.shape[0]
    assert tile.fits(inputs, outputs), f"{tile} does not divide a matrix of {outputs} x {inputs}"
    assert weight_OI.dtype == x_TI.dtype, "both operands of a matrix instruction"
    assert weight_OI.itemsize == 2, "16-bit operands"
    assert out_STO.dtype == torch.float32, "sums are stored as they are"
    assert tokens <= MOST_TOKENS, f"a ring holds {MOST_TOKENS} tokens, and there are {tokens}"
    block_t = max(16, triton.next_power_of_2(tokens))
    # A tile is a plane of its own: what it lacks to BLOCK_O rows lies outside, and is not read.
    weights = TensorDescriptor(
        weight_OI, [outputs // tile.rows, tile.rows, inputs], [tile.rows * inputs, inputs, 1],
        [1, BLOCK_O, tile.block_i], _LAYOUT,
    )  # fmt: skip
    # The first tokens and the last, which overlap: rows outside a tensor take the copy engine long.
    half = block_t // 2
    second = max(tokens - half, 0)
    rows = TensorDescriptor(
        x_TI, [1 + (second > 0), min(tokens, half), inputs], [max(second, 1) * inputs, inputs, 1],
        [2, half, tile.block_i], _LAYOUT,
    )  # fmt: skip
    _wide_ring[outputs // tile.rows, tile.parts](
        weights, rows, bias_O, out_STO, tokens, second, outputs, inputs // tile.block_i,
        BIAS=bias_O is not None, CHAINED=chained, ROWS=tile.rows, BLOCK_O=BLOCK_O,
        BLOCK_I=tile.block_i, BLOCK_T=block_t, SLOTS=tile.slots, num_warps=4, launch_pdl=chained,
    )  # fmt: skip
