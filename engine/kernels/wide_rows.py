"""wide_rows: x @ W.T for more rows than the streaming kernels take, on the matrix units.

From some twenty rows on every program of a streaming kernel would read the rows as often as it
reads weights. Here a program holds a tall tile of output rows and all tokens of its tile. Few tall
tiles do not fill the card, so the inputs are cut into parts as well: every part leaves its sums in
f32, and the kernel that reads them (a norm, a rotation) adds them up.

T tokens   I inputs (summed over)   O outputs (rows of the weight)   S parts of the inputs
U feed-forward width; that weight stacks gate over up: (2U, I)
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import (
    assert_dense,
    prefetch,
    release_successor,
    wait_for_producers,
)
from engine.kernels.wide_ring import RingTile, wide_ring

WIDEST_TILE = 128
"""Tokens of the widest tile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WideTile:
    """How such a product is cut: output rows, inputs of a step, parts, warps, steps in flight.

    `rows` are those of its `block_o` output rows that a tile of wide_gated really has: what divides
    the rows evenly among multiprocessors is no power of two.
    """

    block_o: int
    block_i: int
    parts: int
    warps: int
    stages: int
    rows: int = 0

    @property
    def own(self) -> int:
        """Output rows of one tile."""
        return self.rows or self.block_o

    def options(self, tokens: int) -> dict[str, int]:
        """Keyword arguments of a launch for so many tokens."""
        block_t = min(WIDEST_TILE, max(16, triton.next_power_of_2(tokens)))
        return {
            "BLOCK_O": self.block_o,
            "BLOCK_I": self.block_i,
            "BLOCK_T": block_t,
            "STAGES": self.stages,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }


@triton.jit
def _ahead(w_row_O, first, BLOCK_I: tl.constexpr):
    """The first weights of this program are on their way into the L2 cache."""
    LINES: tl.constexpr = (BLOCK_I + 63) // 64
    prefetch(w_row_O[:, None] + first * BLOCK_I + tl.arange(0, LINES)[None, :] * 64)


@triton.jit
def _load_inputs(
    row, here, offset_I, start, inputs, ALL: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_I: tl.constexpr,
):  # fmt: skip
    """One step's inputs of every row that is here (ALL: they all are), zeros of the others."""
    at = row[:, None] + start * BLOCK_I + offset_I[None, :]
    if ALL and EVEN:
        value = tl.load(at)
    elif EVEN:
        value = tl.load(at, mask=here[:, None], other=0.0)
    else:
        within = (start * BLOCK_I + offset_I)[None, :] < inputs
        value = tl.load(at, mask=within & here[:, None], other=0.0)
    return value


@triton.jit(do_not_specialize=["tokens"])
def _wide_rows(
    x_ptr,
    w_ptr,
    bias_ptr,
    y_ptr,
    tokens,
    inputs,
    outputs,
    EVEN: tl.constexpr,
    BIAS: tl.constexpr,
    CHAINED: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    STAGES: tl.constexpr,
):
    release_successor(CHAINED)
    steps = tl.cdiv(inputs, BLOCK_I)
    part = tl.program_id(1)
    first = part * steps // tl.num_programs(1)
    last = (part + 1) * steps // tl.num_programs(1)
    o_O = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    token_T = tl.program_id(2) * BLOCK_T + tl.arange(0, BLOCK_T)
    row_O = tl.minimum(o_O, outputs - 1)
    offset_I = tl.arange(0, BLOCK_I)
    w_row_O = w_ptr + row_O.to(tl.int64) * inputs
    # Rows behind the last token repeat others, and nobody stores what comes of them. Not one other:
    # every program would ask for the same lines again and again.
    x_row_T = x_ptr + token_T % tokens * inputs
    if CHAINED:
        _ahead(w_row_O, first, BLOCK_I)
    wait_for_producers(CHAINED)
    sum_OT = tl.zeros((BLOCK_O, BLOCK_T), tl.float32)
    for step in tl.range(first, last, num_stages=STAGES):
        w_OI = _load_inputs(w_row_O, o_O >= 0, offset_I, step, inputs, True, EVEN, BLOCK_I)
        x_TI = _load_inputs(x_row_T, token_T >= 0, offset_I, step, inputs, True, EVEN, BLOCK_I)
        sum_OT = tl.dot(w_OI, x_TI.T, sum_OT, input_precision="ieee")
    if BIAS:
        sum_OT += tl.where(part == 0, tl.load(bias_ptr + row_O).to(tl.float32), 0.0)[:, None]
    here_OT = (o_O[:, None] < outputs) & (token_T[None, :] < tokens)
    at_OT = (part * tokens + token_T)[None, :].to(tl.int64) * outputs + o_O[:, None]
    tl.store(y_ptr + at_OT, sum_OT.to(y_ptr.dtype.element_ty), mask=here_OT)


@triton.jit(do_not_specialize=["tokens"])
def _wide_gated(
    x_ptr,
    w_ptr,
    y_ptr,
    tokens,
    inputs,
    U,
    EVEN: tl.constexpr,
    OWN: tl.constexpr,
    CHAINED: tl.constexpr,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    STAGES: tl.constexpr,
):
    release_successor(CHAINED)
    ALL: tl.constexpr = OWN == BLOCK_O
    offset_U = tl.arange(0, BLOCK_O)
    u_U = tl.program_id(0) * OWN + offset_U
    own_U = (offset_U < OWN) & (u_U < U)
    token_T = tl.program_id(2) * BLOCK_T + tl.arange(0, BLOCK_T)
    offset_I = tl.arange(0, BLOCK_I)
    gate_row_U = w_ptr + tl.minimum(u_U, U - 1).to(tl.int64) * inputs
    up_row_U = gate_row_U + U.to(tl.int64) * inputs
    x_row_T = x_ptr + token_T % tokens * inputs
    if CHAINED:
        _ahead(gate_row_U, 0, BLOCK_I)
        _ahead(up_row_U, 0, BLOCK_I)
    wait_for_producers(CHAINED)
    gate_UT = tl.zeros((BLOCK_O, BLOCK_T), tl.float32)
    up_UT = tl.zeros((BLOCK_O, BLOCK_T), tl.float32)
    for step in tl.range(0, tl.cdiv(inputs, BLOCK_I), num_stages=STAGES):
        x_TI = _load_inputs(x_row_T, token_T >= 0, offset_I, step, inputs, True, EVEN, BLOCK_I)
        gate_UI = _load_inputs(gate_row_U, own_U, offset_I, step, inputs, ALL, EVEN, BLOCK_I)
        up_UI = _load_inputs(up_row_U, own_U, offset_I, step, inputs, ALL, EVEN, BLOCK_I)
        gate_UT = tl.dot(gate_UI, x_TI.T, gate_UT, input_precision="ieee")
        up_UT = tl.dot(up_UI, x_TI.T, up_UT, input_precision="ieee")
    act_UT = gate_UT / (1.0 + tl.exp(-gate_UT)) * up_UT
    here_UT = own_U[:, None] & (token_T[None, :] < tokens)
    at_UT = token_T[None, :].to(tl.int64) * U + u_U[:, None]
    tl.store(y_ptr + at_UT, act_UT.to(y_ptr.dtype.element_ty), mask=here_UT)


def wide_rows(
    x_TI: Tensor,
    weight_OI: Tensor,
    *,
    tile: WideTile | RingTile,
    out_STO: Tensor,
    bias_O: Tensor | None = None,
    chained: bool = False,
) -> Tensor:
    """Writes every part of x @ weight.T (+ bias) into out_STO; the parts add up to the product."""
    tokens, inputs = x_TI.shape
    outputs = weight_OI.shape[0]
    assert_dense(x_TI, weight_OI, out_STO)
    assert out_STO.shape == (tile.parts, tokens, outputs), "one product for each part"
    if not tokens:
        return out_STO
    if isinstance(tile, RingTile):
        wide_ring(x_TI, weight_OI, tile=tile, out_STO=out_STO, bias_O=bias_O, chained=chained)
    else:
        options = tile.options(tokens)
        _wide_rows[
            triton.cdiv(outputs, tile.block_o), tile.parts, triton.cdiv(tokens, options["BLOCK_T"])
        ](
            x_TI, weight_OI, bias_O, out_STO, tokens, inputs, outputs,
            EVEN=inputs % tile.block_i == 0, BIAS=bias_O is not None, CHAINED=chained,
            launch_pdl=chained, **options,
        )  # fmt: skip
    return out_STO


def wide_gated(
    x_TI: Tensor, weight_OI: Tensor, *, tile: WideTile, out_TU: Tensor, chained: bool = False
) -> Tensor:
    """Writes silu(x @ gate.T) * (x @ up.T) into out_TU; such a tile has one part."""
    tokens, inputs = x_TI.shape
    width = weight_OI.shape[0] // 2
    assert_dense(x_TI, weight_OI, out_TU)
    assert tile.parts == 1, "the activation needs whole sums"
    options = tile.options(tokens)
    if tokens:
        _wide_gated[triton.cdiv(width, tile.own), 1, triton.cdiv(tokens, options["BLOCK_T"])](
            x_TI, weight_OI, out_TU, tokens, inputs, width,
            EVEN=inputs % tile.block_i == 0, OWN=tile.own, CHAINED=chained, launch_pdl=chained,
            **options,
        )  # fmt: skip
    return out_TU


def wide_rows_reference(x_TI: Tensor, weight_OI: Tensor, *, bias_O: Tensor | None = None) -> Tensor:
    """The sum of all parts in torch: what wide_rows is held to, in float64."""
    return torch.nn.functional.linear(x_TI, weight_OI, bias_O)


def wide_gated_reference(x_TI: Tensor, weight_OI: Tensor) -> Tensor:
    """The same in torch: what wide_gated is held to, in float64."""
    gate_TU, up_TU = (x_TI @ weight_OI.T).chunk(2, dim=-1)
    return torch.nn.functional.silu(gate_TU) * up_TU
