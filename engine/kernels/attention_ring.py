"""attention_ring: one split of attention over a ring of key and value blocks, in Gluon.

The committed columns need no input of this forward, so the ring is filled before the producer of
the queries is done. A block's columns are cut into slices, each with its own running softmax in
warps of its own; one merge at the end makes one of them. Needs 16-bit keys, heads of 64 or 128 and
tensor cores; _attend_split of paged_attention is the portable version.

R query rows per request   Q query heads   C key/value heads   E head width   H heads of a program
P = H * slices   N rows of one head, R * Q / C of them used   Y columns of a slice
"""

from dataclasses import dataclass

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2

from engine.kernels.launch import stream_release, stream_wait
from engine.kernels.stream_tile import async_load


@dataclass(frozen=True, slots=True, kw_only=True)
class RingCut:
    """How a program is cut: heads, slices of a block and their columns, warps that share the rows
    of a slice, blocks of the ring; `columns` are those of a split, 0 for no splitting.
    """

    columns: int
    heads: int
    slices: int
    slice_y: int
    tall: int
    slots: int

    @property
    def block(self) -> int:
        """Columns of one block."""
        return self.slices * self.slice_y

    def options(self) -> dict[str, int]:
        """Keyword arguments of a launch."""
        return {
            "HEADS": self.heads,
            "SLICES": self.slices,
            "SLICE": self.slice_y,
            "TALL": self.tall,
            "SLOTS": self.slots,
            "num_warps": self.heads * self.slices * self.tall,
        }


FEW, SOME = 32, 128
"""Programs before any splitting that are few, and some; more fill the card by themselves."""

_CUTS: dict[tuple[int, int, int], RingCut] = {
    (64, 16, SOME): RingCut(columns=192, heads=1, slices=1, slice_y=64, tall=1, slots=2),
    (64, 32, SOME): RingCut(columns=320, heads=1, slices=1, slice_y=64, tall=2, slots=4),
    (128, 32, SOME): RingCut(columns=256, heads=1, slices=1, slice_y=32, tall=2, slots=4),
    (128, 64, FEW): RingCut(columns=128, heads=1, slices=1, slice_y=64, tall=4, slots=3),
    (64, 16, 0): RingCut(columns=0, heads=1, slices=2, slice_y=64, tall=1, slots=3),
    (128, 64, 0): RingCut(columns=0, heads=1, slices=1, slice_y=64, tall=4, slots=2),
}


def ring_cut(programs: int, rows: int, *, width: int) -> RingCut | None:
    """The cut of attention with so many programs before any splitting, tiles of so many rows and
    heads of this width; None where _attend_split was as fast on one H200 with 1100 columns.
    """
    crowd = next((limit for limit in (FEW, SOME) if programs <= limit), 0)
    return _CUTS.get((width, rows, crowd))


@gluon.constexpr_function
def score_layout(parts, tall):
    """The layout of scores and sums (P, N, Y or E)."""
    return gl.NVMMADistributedLayout(
        version=[2, 0], warps_per_cta=[parts, tall, 1], instr_shape=[1, 16, 8]
    )


@gluon.constexpr_function
def row_layout(parts, tall, width):
    """The layout of a copy (P, rows, E): sixteen bytes a thread."""
    lanes = width // 8
    return gl.BlockedLayout([1, 1, 8], [1, 32 // lanes, lanes], [parts, tall, 1], [2, 1, 0])


@gluon.jit
def _load_slots(
    row_ptr, tail_ptr, start, prefix, end, HEADS: gl.constexpr, SLICES: gl.constexpr,
    SLICE: gl.constexpr, LAYOUT: gl.constexpr,
):  # fmt: skip
    """Returns the slot of every column (P, Y) of a block, -1 beyond the end."""
    p_P = gl.arange(0, HEADS * SLICES, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    y_Y = gl.arange(0, SLICE, gl.SliceLayout(0, gl.SliceLayout(2, LAYOUT)))
    y_PY = start + (p_P % SLICES)[:, None] * SLICE + y_Y[None, :]
    at_PY = gl.where(y_PY < prefix, row_ptr + y_PY, tail_ptr + (y_PY - prefix))
    return gl.load(at_PY, mask=y_PY < end, other=-1)


@gluon.jit
def _copy_block(
    k_ring, v_ring, k_ptr, v_ptr, slot_PY, turn, HEADS: gl.constexpr, SLICES: gl.constexpr,
    STRIDE: gl.constexpr, E: gl.constexpr, LAYOUT: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """The keys and values of these slots are on their way into this turn's part of the ring; zeros
    where there is none.
    """
    p_P = gl.arange(0, HEADS * SLICES, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    e_E = gl.arange(0, E, gl.SliceLayout(0, gl.SliceLayout(1, LAYOUT)))
    at_PY = slot_PY.to(gl.int64) * STRIDE + (p_P // SLICES)[:, None] * E
    at_PYE = at_PY[:, :, None] + e_E[None, None, :]
    here_PYE = (slot_PY >= 0)[:, :, None]
    async_load(k_ring.index(turn % SLOTS), k_ptr + at_PYE, mask=here_PYE)
    async_load(v_ring.index(turn % SLOTS), v_ptr + at_PYE, mask=here_PYE)


@gluon.jit
def _over_slices(x_PN, HEADS: gl.constexpr, SLICES: gl.constexpr, BLOCK_N: gl.constexpr):
    """Returns the largest value of any slice of the same head, for each slice."""
    x_HSN = x_PN.reshape((HEADS, SLICES, BLOCK_N))
    top_HSN, _ = gl.broadcast(gl.expand_dims(gl.max(x_HSN, axis=1), 1), x_HSN)
    return gl.convert_layout(top_HSN.reshape((HEADS * SLICES, BLOCK_N)), x_PN.type.layout)


@gluon.jit
def attend_ring(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    table_stride,
    row_ptr,
    prefix_ptr,
    tail_ptr,
    word_ptr,
    part_ptr,
    weight_ptr,
    tail,
    columns,
    scale,
    R: gl.constexpr,
    GROUP: gl.constexpr,
    C: gl.constexpr,
    E: gl.constexpr,
    BLOCK_N: gl.constexpr,
    HEADS: gl.constexpr,
    SLICES: gl.constexpr,
    SLICE: gl.constexpr,
    TALL: gl.constexpr,
    SLOTS: gl.constexpr,
    DIRECT: gl.constexpr,
    CHAINED: gl.constexpr,
):
    """The arguments of _attend_split, for HEADS adjacent key/value heads at a time."""
    stream_release(CHAINED)
    P: gl.constexpr = HEADS * SLICES
    BLOCK_Y: gl.constexpr = SLICES * SLICE
    STRIDE: gl.constexpr = C * E
    copied: gl.constexpr = row_layout(P, TALL, E)
    scored: gl.constexpr = score_layout(P, TALL)
    right: gl.constexpr = gl.DotOperandLayout(1, scored, 2)
    left: gl.constexpr = gl.DotOperandLayout(0, scored, 2)
    split = gl.program_id(0)
    head = gl.program_id(1) * HEADS
    request = gl.program_id(2)
    prefix = gl.load(prefix_ptr + request).to(gl.int32)
    end = prefix + tail
    first = split * columns
    last = gl.minimum(first + columns, end)
    total = gl.cdiv(gl.maximum(last - first, 0), BLOCK_Y)
    if total > 0:
        row_ptr = table_ptr + gl.load(row_ptr + request).to(gl.int64) * table_stride
        tail_ptr += request * tail
        k_ptr += head * E
        v_ptr += head * E
        shared: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [2, 1, 0])
        dtype: gl.constexpr = k_ptr.dtype.element_ty
        k_ring = gl.allocate_shared_memory(dtype, [SLOTS, P, SLICE, E], shared)
        v_ring = gl.allocate_shared_memory(dtype, [SLOTS, P, SLICE, E], shared)
        committed = gl.minimum(prefix, first + total * BLOCK_Y)
        for turn in gl.static_range(SLOTS - 1):
            start = first + turn * BLOCK_Y
            if start + BLOCK_Y <= committed:
                slot_PY = _load_slots(
                    row_ptr, tail_ptr, start, prefix, end, HEADS, SLICES, SLICE, copied
                )
                _copy_block(
                    k_ring, v_ring, k_ptr, v_ptr, slot_PY, turn, HEADS, SLICES, STRIDE, E, copied,
                    SLOTS,
                )  # fmt: skip
        next_PY = _load_slots(
            row_ptr, tail_ptr, first + (SLOTS - 1) * BLOCK_Y, prefix, end, HEADS, SLICES, SLICE,
            copied,
        )  # fmt: skip
        stream_wait(CHAINED)
        for turn in gl.static_range(SLOTS - 1):
            start = first + turn * BLOCK_Y
            if (turn < total) & (start + BLOCK_Y > committed):
                slot_PY = _load_slots(
                    row_ptr, tail_ptr, start, prefix, end, HEADS, SLICES, SLICE, copied
                )
                _copy_block(
                    k_ring, v_ring, k_ptr, v_ptr, slot_PY, turn, HEADS, SLICES, STRIDE, E, copied,
                    SLOTS,
                )  # fmt: skip
            async_copy.commit_group()

        p_P = gl.arange(0, P, gl.SliceLayout(1, gl.SliceLayout(2, copied)))
        n_N = gl.arange(0, BLOCK_N, gl.SliceLayout(0, gl.SliceLayout(2, copied)))
        e_E = gl.arange(0, E, gl.SliceLayout(0, gl.SliceLayout(1, copied)))
        token_N = request * R + n_N // GROUP
        at_PN = (token_N * C + head) * GROUP + n_N % GROUP
        at_PN = at_PN[None, :] + (p_P // SLICES)[:, None] * GROUP
        q_PNE = gl.load(
            q_ptr + at_PN[:, :, None] * E + e_E[None, None, :],
            mask=(n_N < R * GROUP)[None, :, None],
            other=0.0,
        )
        q_PNE = gl.convert_layout(q_PNE, left)
        row_N = gl.arange(0, BLOCK_N, gl.SliceLayout(0, gl.SliceLayout(2, scored)))
        word_N = gl.load(
            word_ptr + request * R + row_N // GROUP, mask=row_N < R * GROUP, other=0
        )
        slice_P = gl.arange(0, P, gl.SliceLayout(1, gl.SliceLayout(1, scored))) % SLICES
        y_Y = gl.arange(0, SLICE, gl.SliceLayout(0, gl.SliceLayout(1, scored)))
        offset_PY = slice_P[:, None] * SLICE + y_Y[None, :]

        top_PN = gl.full((P, BLOCK_N), float("-inf"), gl.float32, gl.SliceLayout(2, scored))
        sum_PN = gl.zeros((P, BLOCK_N), gl.float32, gl.SliceLayout(2, scored))
        acc_PNE = gl.zeros((P, BLOCK_N, E), gl.float32, scored)
        for turn in range(total):
            async_copy.wait_group(SLOTS - 2)
            ahead = turn + SLOTS - 1
            if ahead < total:
                _copy_block(
                    k_ring, v_ring, k_ptr, v_ptr, next_PY, ahead, HEADS, SLICES, STRIDE, E, copied,
                    SLOTS,
                )  # fmt: skip
            async_copy.commit_group()
            # A turn early: the copy does not wait for its slots.
            next_PY = _load_slots(
                row_ptr, tail_ptr, first + (ahead + 1) * BLOCK_Y, prefix, end, HEADS, SLICES,
                SLICE, copied,
            )  # fmt: skip
            k_PEY = k_ring.index(turn % SLOTS).permute((0, 2, 1)).load(right)
            score_PNY = mma_v2(
                q_PNE, k_PEY, gl.zeros((P, BLOCK_N, SLICE), gl.float32, scored)
            )
            start = first + turn * BLOCK_Y
            if start + BLOCK_Y > prefix:
                y_PY = start + offset_PY
                in_tail_PY = ((y_PY >= prefix) & (y_PY < end)).to(gl.int64)
                bit_PY = gl.minimum(gl.maximum(y_PY - prefix, 0), 63).to(gl.int64)
                seen_PNY = (word_N[None, :, None] >> bit_PY[:, None, :]) & 1
                seen_PNY &= in_tail_PY[:, None, :]
                score_PNY = gl.where(
                    (y_PY < prefix)[:, None, :] | (seen_PNY != 0), score_PNY, float("-inf")
                )
            new_top_PN = gl.maximum(top_PN, gl.max(score_PNY, axis=2) * scale)
            # What has seen nothing yet keeps -inf; subtracting it from itself would be NaN.
            base_PN = gl.where(new_top_PN == float("-inf"), 0.0, new_top_PN)
            p_PNY = gl.exp2(score_PNY * scale - base_PN[:, :, None])
            keep_PN = gl.exp2(top_PN - base_PN)
            top_PN = new_top_PN
            sum_PN = sum_PN * keep_PN + gl.sum(p_PNY, axis=2)
            acc_PNE = acc_PNE * keep_PN[:, :, None]
            v_PYE = v_ring.index(turn % SLOTS).load(right)
            acc_PNE = mma_v2(gl.convert_layout(p_PNY.to(dtype), left), v_PYE, acc_PNE)

        if SLICES > 1:
            all_top_PN = _over_slices(top_PN, HEADS, SLICES, BLOCK_N)
            keep_PN = gl.exp2(top_PN - gl.where(all_top_PN == float("-inf"), 0.0, all_top_PN))
            sum_PN *= keep_PN
            acc_PNE *= keep_PN[:, :, None]
            top_PN = all_top_PN
        written: gl.constexpr = row_layout(1, P * TALL, E)
        along_HN: gl.constexpr = gl.SliceLayout(2, written)
        acc_HNE = gl.sum(acc_PNE.reshape((HEADS, SLICES, BLOCK_N, E)), axis=1)
        acc_HNE = gl.convert_layout(acc_HNE, written)
        sum_HN = gl.sum(sum_PN.reshape((HEADS, SLICES, BLOCK_N)), axis=1)
        sum_HN = gl.convert_layout(sum_HN, along_HN)
        top_HN = gl.convert_layout(
            gl.max(top_PN.reshape((HEADS, SLICES, BLOCK_N)), axis=1), along_HN
        )
        h_H = gl.arange(0, HEADS, gl.SliceLayout(1, along_HN))
        n_N = gl.arange(0, BLOCK_N, gl.SliceLayout(0, along_HN))
        e_E = gl.arange(0, E, gl.SliceLayout(0, gl.SliceLayout(1, written)))
        head_N = ((request * R + n_N // GROUP) * C + head) * GROUP + n_N % GROUP
        head_HN = head_N[None, :] + h_H[:, None] * GROUP
        here_HN = ((n_N < R * GROUP)[None, :]) & (h_H < HEADS)[:, None]
        part_HN = head_HN.to(gl.int64) * gl.num_programs(0) + split
        # A row that saw nothing has a sum of 0 and a top of -inf: its part is 0, its weight -inf.
        whole_HN = gl.where(sum_HN > 0.0, sum_HN, 1.0)
        mean_HNE = (acc_HNE / whole_HN[:, :, None]).to(part_ptr.dtype.element_ty)
        at_HNE = part_ptr + part_HN[:, :, None] * E + e_E[None, None, :]
        gl.store(at_HNE, mean_HNE, mask=here_HN[:, :, None])
        if not DIRECT:
            gl.store(weight_ptr + part_HN, top_HN + gl.log2(whole_HN), mask=here_HN)
