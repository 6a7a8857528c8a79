"""row_tile: the weight-streaming product of the Triton linear kernels, and the rows between two
norms.

A decode step multiplies a few rows by matrices far larger than the caches, so a kernel is as fast
as it reads weights. A program owns some output rows of the matrix, reads them once and multiplies
them by all tokens of its tile. For one token it multiplies and adds, with the first weights in
registers before the producer is done; for more it uses the tensor cores, each warp summing its own
slice of the inputs.

T tokens   I inputs (summed over)   O outputs (rows of the weight)   G programs of the producer
"""

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import release_successor, wait_for_producers


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTile:
    """How a Triton linear kernel is cut; block_t = 1 is multiply and add, more are tensor cores."""

    block_o: int
    block_i: int
    block_t: int
    warps: int
    stages: int

    @property
    def outputs(self) -> int:
        """Output rows of one program."""
        return self.block_o

    def options(self) -> dict[str, int]:
        """Keyword arguments of a launch."""
        return {
            "BLOCK_O": self.block_o,
            "BLOCK_I": self.block_i,
            "BLOCK_T": self.block_t,
            "SLICES": self.warps,
            "STAGES": self.stages,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledRows:
    """Rows on their way through an RMS norm: times the gain, not yet over the root mean square.

    The division is one number per token, so a linear kernel applies it to its sums. Whoever
    produces the rows leaves the squares of the unscaled rows, summed per program, in square_TG
    (f32).
    """

    x_TI: Tensor
    square_TG: Tensor


@triton.jit
def load_squares(square_ptr, token_T, tokens, PARTS: tl.constexpr, BLOCK_G: tl.constexpr):
    """Returns the producer's sums of squares, f32 (BLOCK_T, BLOCK_G), zero where there are none."""
    g_G = tl.arange(0, BLOCK_G)
    here_TG = (token_T[:, None] < tokens) & (g_G[None, :] < PARTS)
    return tl.load(square_ptr + token_T[:, None] * PARTS + g_G[None, :], mask=here_TG, other=0.0)


@triton.jit
def split_halves(y_OT, BLOCK_O: tl.constexpr, BLOCK_T: tl.constexpr):
    """Returns the first and the last BLOCK_O / 2 rows of y_OT."""
    pair = tl.reshape(y_OT, (2, BLOCK_O // 2, BLOCK_T))
    return tl.split(tl.permute(pair, (1, 2, 0)))


@triton.jit
def first_weights(
    w_ptr,
    row_O,
    INPUTS: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """Returns the first BLOCK_I weights of each row for one token, zeros for more; the successor is
    released and the producers are done.
    """
    release_successor(CHAINED)
    offset_I = tl.arange(0, BLOCK_I)
    at_OI = row_O.to(tl.int64)[:, None] * INPUTS + offset_I[None, :]
    if BLOCK_T > 1:
        w_OI = tl.zeros_like(at_OI)
    elif INPUTS % BLOCK_I == 0:
        w_OI = tl.load(w_ptr + at_OI)
    else:
        w_OI = tl.load(w_ptr + at_OI, mask=offset_I[None, :] < INPUTS, other=0.0)
    wait_for_producers(CHAINED)
    return w_OI


@triton.jit
def accumulate_rows(
    x_ptr,
    w_ptr,
    square_ptr,
    w_OI,
    row_O,
    token_T,
    tokens,
    eps,
    INPUTS: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    SLICES: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Returns W[row_O] @ x[token_T].T, f32 (BLOCK_O, BLOCK_T); over the rms of x if PARTS > 0.

    w_OI are first_weights.
    """
    EVEN: tl.constexpr = INPUTS % BLOCK_I == 0
    w_row_O = w_ptr + row_O.to(tl.int64) * INPUTS
    if BLOCK_T == 1:
        offset_I = tl.arange(0, BLOCK_I)
        w_row_OI = w_row_O[:, None] + offset_I[None, :]
        if PARTS > 0:
            square_TG = load_squares(square_ptr, token_T, tokens, PARTS, BLOCK_G)
        x_I = tl.load(x_ptr + offset_I, mask=offset_I < INPUTS, other=0.0)
        sum_OI = w_OI.to(tl.float32) * x_I.to(tl.float32)[None, :]
        for start in tl.range(BLOCK_I, INPUTS, BLOCK_I, num_stages=STAGES):
            if EVEN:
                w_OI = tl.load(w_row_OI + start, eviction_policy="evict_first")
                x_I = tl.load(x_ptr + start + offset_I)
            else:
                here_I = start + offset_I < INPUTS
                w_OI = tl.load(w_row_OI + start, mask=here_I[None, :], other=0.0)
                x_I = tl.load(x_ptr + start + offset_I, mask=here_I, other=0.0)
            sum_OI += w_OI.to(tl.float32) * x_I.to(tl.float32)[None, :]
        sum_OT = tl.sum(sum_OI, axis=1)[:, None]
    else:
        SLICE: tl.constexpr = BLOCK_I // SLICES
        offset_PI = tl.arange(0, SLICES)[:, None] * SLICE + tl.arange(0, SLICE)[None, :]
        w_row_POI = w_row_O[None, :, None] + offset_PI[:, None, :]
        x_row_PIT = x_ptr + token_T[None, None, :] * INPUTS + offset_PI[:, :, None]
        here_T = token_T < tokens
        if PARTS > 0:
            square_TG = load_squares(square_ptr, token_T, tokens, PARTS, BLOCK_G)
        sum_POT = tl.zeros((SLICES, BLOCK_O, BLOCK_T), tl.float32)
        for start in tl.range(0, INPUTS, BLOCK_I, num_stages=STAGES):
            if EVEN:
                w_POI = tl.load(w_row_POI + start, eviction_policy="evict_first")
                x_PIT = tl.load(x_row_PIT + start, mask=here_T[None, None, :], other=0.0)
            else:
                here_PI = start + offset_PI < INPUTS
                w_POI = tl.load(w_row_POI + start, mask=here_PI[:, None, :], other=0.0)
                here_PIT = here_PI[:, :, None] & here_T[None, None, :]
                x_PIT = tl.load(x_row_PIT + start, mask=here_PIT, other=0.0)
            sum_POT = tl.dot(w_POI, x_PIT, sum_POT, input_precision="ieee")
        sum_OT = tl.sum(sum_POT, axis=0)
    if PARTS > 0:
        sum_OT *= tl.rsqrt(tl.sum(square_TG, axis=1) / INPUTS + eps)[None, :]
    return sum_OT
