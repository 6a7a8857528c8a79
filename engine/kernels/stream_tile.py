"""stream_tile: the weight-streaming product as one endless ring per multiprocessor, in Gluon.

A launch has as many programs as the card has multiprocessors (or twice that). Each walks its tiles
of the matrix and keeps a ring of shared-memory slots filled ahead of the tensor cores, across the
border of one tile and the next; the ring is filled before the producer is done, since weights need
no input. Every warp sums its own slice of the inputs. What a row sums, and in which order, is the
same for any number of tokens. Needs 16-bit weights, tensor cores and sizes that divide.

T tokens   I inputs (summed over)   O output rows of one block; a tile is a low and a high block
P warps, each with its slice L of the inputs   G programs of the producer
"""

from dataclasses import dataclass, replace

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2

from engine.kernels.launch import stream_release, stream_wait

# The copy's name until Triton 3.6, and since.
async_load = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared

SHARED_BYTES = 220 * 1024
"""What the slots of the programs on a Hopper multiprocessor may take of its 227 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTile:
    """How a Gluon linear kernel is cut; per_sm programs share a multiprocessor.

    One block a tile gives a small matrix a tile for every multiprocessor; only linear_stream has
    such tiles.
    """

    block_o: int
    slice_i: int
    block_t: int
    warps: int
    slots: int
    per_sm: int = 1
    blocks: int = 2

    @property
    def outputs(self) -> int:
        """Output rows of one tile, all its blocks."""
        return self.blocks * self.block_o

    @property
    def chunk(self) -> int:
        """Inputs of one slot."""
        return self.slice_i * self.warps

    def fits(self, inputs: int, block: int) -> bool:
        """Whether a matrix of so many inputs, in blocks of so many rows, divides into tiles."""
        return inputs % self.chunk == 0 and block % self.block_o == 0

    def for_tokens(self, tokens: int) -> "StreamTile":
        """The same cut with room for these tokens (at most 32 a tile) in the slots that still
        fit.
        """
        block_t = min(32, max(8, 1 << (tokens - 1).bit_length()))
        slot = 2 * self.chunk * (self.outputs + block_t) * self.per_sm
        return replace(self, block_t=block_t, slots=max(2, min(self.slots, SHARED_BYTES // slot)))

    def programs(self, tiles: int, device: torch.device) -> int:
        """Programs of a launch over so many tiles."""
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        return min(tiles, processors * self.per_sm)

    def options(self) -> dict[str, int]:
        """Keyword arguments of a launch."""
        return {
            "BLOCK_O": self.block_o,
            "SLICE": self.slice_i,
            "BLOCK_T": self.block_t,
            "WARPS": self.warps,
            "SLOTS": self.slots,
            "BLOCKS": self.blocks,
            "num_warps": self.warps,
        }


@gluon.constexpr_function
def sum_layout(warps):
    """The layout of the sums of every warp (P, O, T)."""
    return gl.NVMMADistributedLayout(
        version=[2, 0], warps_per_cta=[warps, 1, 1], instr_shape=[1, 16, 8]
    )


@gluon.constexpr_function
def row_layout(warps):
    """The layout of an index over O, beside complete sums."""
    return gl.SliceLayout(1, gl.SliceLayout(0, sum_layout(warps)))


@gluon.constexpr_function
def token_layout(warps):
    """The layout of an index over T, beside complete sums."""
    return gl.SliceLayout(0, gl.SliceLayout(0, sum_layout(warps)))


@gluon.constexpr_function
def copy_layout(warps, slice_i):
    """The layout of a copy (P, rows, L): sixteen bytes a thread, a row's slice side by side."""
    lanes = slice_i // 8
    rows = 32 // lanes
    return gl.BlockedLayout(
        [1, 1, 8],
        [rows, 1, lanes],
        [max(1, warps // rows), min(warps, rows), 1],
        [2, 0, 1],
    )


@gluon.jit
def copy_weights(
    low_ring, high_ring, w_ptr, step, CHUNKS: gl.constexpr, SUB: gl.constexpr,
    OUTER: gl.constexpr, GAP: gl.constexpr, INPUTS: gl.constexpr, BLOCK_O: gl.constexpr,
    SLICE: gl.constexpr, WARPS: gl.constexpr, SLOTS: gl.constexpr, BLOCKS: gl.constexpr,
):  # fmt: skip
    """The blocks of this step of the program are on their way into their slot."""
    layout: gl.constexpr = copy_layout(WARPS, SLICE)
    p_P = gl.arange(0, WARPS, gl.SliceLayout(1, gl.SliceLayout(2, layout)))
    o_O = gl.arange(0, BLOCK_O, gl.SliceLayout(0, gl.SliceLayout(2, layout)))
    i_L = gl.arange(0, SLICE, gl.SliceLayout(0, gl.SliceLayout(1, layout)))
    at_POL = p_P[:, None, None] * SLICE + o_O[None, :, None] * INPUTS + i_L[None, None, :]
    tile = gl.program_id(0) + (step // CHUNKS) * gl.num_programs(0)
    low = (tile // SUB) * OUTER + (tile % SUB) * BLOCK_O
    low_ptr = w_ptr + low.to(gl.int64) * INPUTS + (step % CHUNKS) * (WARPS * SLICE)
    slot = step % SLOTS
    async_load(low_ring.index(slot), low_ptr + at_POL, eviction_policy="evict_first")
    if BLOCKS == 2:
        async_load(
            high_ring.index(slot), low_ptr + GAP * INPUTS + at_POL, eviction_policy="evict_first"
        )


@gluon.jit
def copy_tokens(
    x_ring, x_ptr, tokens, step, CHUNKS: gl.constexpr, INPUTS: gl.constexpr, BLOCK_T: gl.constexpr,
    SLICE: gl.constexpr, WARPS: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """This step's inputs of all tokens are on their way into their slot."""
    layout: gl.constexpr = copy_layout(WARPS, SLICE)
    p_P = gl.arange(0, WARPS, gl.SliceLayout(1, gl.SliceLayout(2, layout)))
    t_T = gl.arange(0, BLOCK_T, gl.SliceLayout(0, gl.SliceLayout(2, layout)))
    t_T += gl.program_id(1) * BLOCK_T
    i_L = gl.arange(0, SLICE, gl.SliceLayout(0, gl.SliceLayout(1, layout)))
    at_PTL = p_P[:, None, None] * SLICE + t_T[None, :, None] * INPUTS + i_L[None, None, :]
    # A column nobody asked for is zero.
    async_load(
        x_ring.index(step % SLOTS),
        x_ptr + (step % CHUNKS) * (WARPS * SLICE) + at_PTL,
        mask=(t_T < tokens)[None, :, None],
    )


@gluon.jit
def open_rings(
    x_ptr, w_ptr, tokens, total, CHUNKS: gl.constexpr, SUB: gl.constexpr, OUTER: gl.constexpr,
    GAP: gl.constexpr, INPUTS: gl.constexpr, BLOCK_O: gl.constexpr, BLOCK_T: gl.constexpr,
    SLICE: gl.constexpr, WARPS: gl.constexpr, SLOTS: gl.constexpr, BLOCKS: gl.constexpr,
    CHAINED: gl.constexpr,
):  # fmt: skip
    """Returns the rings of low rows, high rows and tokens, filled but for one slot."""
    stream_release(CHAINED)
    shared: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [2, 1, 0])
    dtype: gl.constexpr = w_ptr.dtype.element_ty
    low_ring = gl.allocate_shared_memory(dtype, [SLOTS, WARPS, BLOCK_O, SLICE], shared)
    high_ring = low_ring
    if BLOCKS == 2:
        high_ring = gl.allocate_shared_memory(dtype, [SLOTS, WARPS, BLOCK_O, SLICE], shared)
    x_ring = gl.allocate_shared_memory(dtype, [SLOTS, WARPS, BLOCK_T, SLICE], shared)
    for step in gl.static_range(SLOTS - 1):
        if step < total:
            copy_weights(
                low_ring, high_ring, w_ptr, step, CHUNKS, SUB, OUTER, GAP, INPUTS, BLOCK_O,
                SLICE, WARPS, SLOTS, BLOCKS,
            )  # fmt: skip
    stream_wait(CHAINED)
    for step in gl.static_range(SLOTS - 1):
        if step < total:
            copy_tokens(x_ring, x_ptr, tokens, step, CHUNKS, INPUTS, BLOCK_T, SLICE, WARPS, SLOTS)
        async_copy.commit_group()
    return low_ring, high_ring, x_ring


@gluon.jit
def inverse_rms(
    square_ptr, tokens, eps, INPUTS: gl.constexpr, PARTS: gl.constexpr, BLOCK_G: gl.constexpr,
    BLOCK_T: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """Returns 1 / rms of every token from its producer's sums of squares, f32 (BLOCK_T,)."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [1, WARPS], [1, 0])
    g_G = gl.arange(0, BLOCK_G, gl.SliceLayout(0, layout))
    t_T = gl.program_id(1) * BLOCK_T + gl.arange(0, BLOCK_T, gl.SliceLayout(1, layout))
    square_TG = gl.load(
        square_ptr + t_T[:, None] * PARTS + g_G[None, :],
        mask=(t_T < tokens)[:, None] & (g_G < PARTS)[None, :],
        other=0.0,
    )
    scale_T = gl.rsqrt(gl.sum(square_TG, axis=1) / INPUTS + eps)
    return gl.convert_layout(scale_T, token_layout(WARPS))


@gluon.jit
def tile_sums(
    low_ring, high_ring, x_ring, x_ptr, w_ptr, tokens, first, total, CHUNKS: gl.constexpr,
    SUB: gl.constexpr, OUTER: gl.constexpr, GAP: gl.constexpr, INPUTS: gl.constexpr,
    BLOCK_O: gl.constexpr, BLOCK_T: gl.constexpr, SLICE: gl.constexpr, WARPS: gl.constexpr,
    SLOTS: gl.constexpr, BLOCKS: gl.constexpr,
):  # fmt: skip
    """Returns low and high rows times the tokens, f32 (BLOCK_O, BLOCK_T), and keeps the ring
    full; zeros for high rows where a tile has none.
    """
    layout: gl.constexpr = sum_layout(WARPS)
    weight: gl.constexpr = gl.DotOperandLayout(0, layout, 2)
    token: gl.constexpr = gl.DotOperandLayout(1, layout, 2)
    low_POT = gl.zeros((WARPS, BLOCK_O, BLOCK_T), gl.float32, layout)
    high_POT = gl.zeros((WARPS, BLOCK_O, BLOCK_T), gl.float32, layout)
    for chunk in range(CHUNKS):
        step = first + chunk
        async_copy.wait_group(SLOTS - 2)
        ahead = step + SLOTS - 1
        if ahead < total:
            copy_weights(
                low_ring, high_ring, w_ptr, ahead, CHUNKS, SUB, OUTER, GAP, INPUTS, BLOCK_O,
                SLICE, WARPS, SLOTS, BLOCKS,
            )  # fmt: skip
            copy_tokens(x_ring, x_ptr, tokens, ahead, CHUNKS, INPUTS, BLOCK_T, SLICE, WARPS, SLOTS)
        async_copy.commit_group()
        slot = step % SLOTS
        x_PLT = x_ring.index(slot).permute((0, 2, 1)).load(token)
        low_POT = mma_v2(low_ring.index(slot).load(weight), x_PLT, low_POT)
        if BLOCKS == 2:
            high_POT = mma_v2(high_ring.index(slot).load(weight), x_PLT, high_POT)
    return gl.sum(low_POT, axis=0), gl.sum(high_POT, axis=0)
