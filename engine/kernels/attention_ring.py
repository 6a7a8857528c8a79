"""attention_ring: one split of attention over a ring of key and value blocks, in Gluon.

The committed columns need no input of this forward, so the ring is filled before the producer of
the queries is done. A block's columns are cut into slices, each with its own running softmax in
warps of its own; one merge at the end makes one of them. Needs 16-bit keys, heads of 64 or 128 and
tensor cores; attend_split of attention_split is the portable version.

R query rows per request   Q query heads   C key/value heads   E head width   P slices of a block
N rows of one key/value head, R * Q / C of them used   Y columns of a slice
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2

from engine.kernels.launch import stream_release, stream_wait
from engine.kernels.stream_tile import async_load


@gluon.constexpr_function
def score_layout(slices, tall):
    """The layout of scores and sums (P, N, Y or E)."""
    return gl.NVMMADistributedLayout(
        version=[2, 0], warps_per_cta=[slices, tall, 1], instr_shape=[1, 16, 8]
    )


@gluon.constexpr_function
def row_layout(slices, tall, width):
    """The layout of a copy (P, rows, E): sixteen bytes a thread."""
    lanes = width // 8
    return gl.BlockedLayout([1, 1, 8], [1, 32 // lanes, lanes], [slices, tall, 1], [2, 1, 0])


@gluon.jit
def _load_slots(
    row_ptr, tail_ptr, start, prefix, end, SLICES: gl.constexpr, SLICE: gl.constexpr,
    LAYOUT: gl.constexpr,
):  # fmt: skip
    """Returns the slot of every column (P, Y) of a block, -1 beyond the end."""
    p_P = gl.arange(0, SLICES, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    y_Y = gl.arange(0, SLICE, gl.SliceLayout(0, gl.SliceLayout(2, LAYOUT)))
    y_PY = start + p_P[:, None] * SLICE + y_Y[None, :]
    at_PY = gl.where(y_PY < prefix, row_ptr + y_PY, tail_ptr + (y_PY - prefix))
    return gl.load(at_PY, mask=y_PY < end, other=-1)


@gluon.jit
def _copy_block(
    k_ring, v_ring, k_ptr, v_ptr, slot_PY, turn, STRIDE: gl.constexpr, E: gl.constexpr,
    LAYOUT: gl.constexpr, SLOTS: gl.constexpr,
):  # fmt: skip
    """The keys and values of these slots are on their way into this turn's part of the ring; zeros
    where there is none.
    """
    e_E = gl.arange(0, E, gl.SliceLayout(0, gl.SliceLayout(1, LAYOUT)))
    at_PYE = (slot_PY.to(gl.int64) * STRIDE)[:, :, None] + e_E[None, None, :]
    here_PYE = (slot_PY >= 0)[:, :, None]
    async_load(k_ring.index(turn % SLOTS), k_ptr + at_PYE, mask=here_PYE)
    async_load(v_ring.index(turn % SLOTS), v_ptr + at_PYE, mask=here_PYE)


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
    SLICES: gl.constexpr,
    SLICE: gl.constexpr,
    TALL: gl.constexpr,
    SLOTS: gl.constexpr,
    DIRECT: gl.constexpr,
    CHAINED: gl.constexpr,
):
    """The arguments of attend_split, and the cut."""
    stream_release(CHAINED)
    BLOCK_Y: gl.constexpr = SLICES * SLICE
    STRIDE: gl.constexpr = C * E
    copied: gl.constexpr = row_layout(SLICES, TALL, E)
    scored: gl.constexpr = score_layout(SLICES, TALL)
    right: gl.constexpr = gl.DotOperandLayout(1, scored, 2)
    left: gl.constexpr = gl.DotOperandLayout(0, scored, 2)
    split = gl.program_id(0)
    head = gl.program_id(1)
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
        k_ring = gl.allocate_shared_memory(dtype, [SLOTS, SLICES, SLICE, E], shared)
        v_ring = gl.allocate_shared_memory(dtype, [SLOTS, SLICES, SLICE, E], shared)
        # Committed columns were written before this forward began: read ahead of the producer.
        committed = gl.minimum(prefix, first + total * BLOCK_Y)
        for turn in gl.static_range(SLOTS - 1):
            start = first + turn * BLOCK_Y
            if start + BLOCK_Y <= committed:
                slot_PY = _load_slots(row_ptr, tail_ptr, start, prefix, end, SLICES, SLICE, copied)
                _copy_block(k_ring, v_ring, k_ptr, v_ptr, slot_PY, turn, STRIDE, E, copied, SLOTS)
        start = first + (SLOTS - 1) * BLOCK_Y
        next_PY = _load_slots(row_ptr, tail_ptr, start, prefix, end, SLICES, SLICE, copied)
        stream_wait(CHAINED)
        for turn in gl.static_range(SLOTS - 1):
            start = first + turn * BLOCK_Y
            if (turn < total) & (start + BLOCK_Y > committed):
                slot_PY = _load_slots(row_ptr, tail_ptr, start, prefix, end, SLICES, SLICE, copied)
                _copy_block(k_ring, v_ring, k_ptr, v_ptr, slot_PY, turn, STRIDE, E, copied, SLOTS)
            async_copy.commit_group()

        n_N = gl.arange(0, BLOCK_N, gl.SliceLayout(0, gl.SliceLayout(2, copied)))
        e_E = gl.arange(0, E, gl.SliceLayout(0, gl.SliceLayout(1, copied)))
        at_N = ((request * R + n_N // GROUP) * C + head) * GROUP + n_N % GROUP
        q_1NE = gl.load(
            q_ptr + at_N[None, :, None] * E + e_E[None, None, :],
            mask=(n_N < R * GROUP)[None, :, None],
            other=0.0,
        )
        every_PNE = gl.zeros((SLICES, BLOCK_N, E), dtype, copied)
        q_PNE = gl.convert_layout(gl.broadcast(q_1NE, every_PNE)[0], left)
        row_N = gl.arange(0, BLOCK_N, gl.SliceLayout(0, gl.SliceLayout(2, scored)))
        word_N = gl.load(word_ptr + request * R + row_N // GROUP, mask=row_N < R * GROUP, other=0)
        p_P = gl.arange(0, SLICES, gl.SliceLayout(1, gl.SliceLayout(1, scored)))
        y_Y = gl.arange(0, SLICE, gl.SliceLayout(0, gl.SliceLayout(1, scored)))
        offset_PY = p_P[:, None] * SLICE + y_Y[None, :]

        top_PN = gl.full((SLICES, BLOCK_N), float("-inf"), gl.float32, gl.SliceLayout(2, scored))
        sum_PN = gl.zeros((SLICES, BLOCK_N), gl.float32, gl.SliceLayout(2, scored))
        acc_PNE = gl.zeros((SLICES, BLOCK_N, E), gl.float32, scored)
        for turn in range(total):
            async_copy.wait_group(SLOTS - 2)
            ahead = turn + SLOTS - 1
            if ahead < total:
                _copy_block(k_ring, v_ring, k_ptr, v_ptr, next_PY, ahead, STRIDE, E, copied, SLOTS)
            async_copy.commit_group()
            # A turn early: the copy does not wait for its slots.
            after = first + (ahead + 1) * BLOCK_Y
            next_PY = _load_slots(row_ptr, tail_ptr, after, prefix, end, SLICES, SLICE, copied)
            k_PEY = k_ring.index(turn % SLOTS).permute((0, 2, 1)).load(right)
            score_PNY = mma_v2(q_PNE, k_PEY, gl.zeros((SLICES, BLOCK_N, SLICE), gl.float32, scored))
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

        top_N = gl.max(top_PN, axis=0)
        if SLICES > 1:
            base_N = gl.where(top_N == float("-inf"), 0.0, top_N)
            keep_PN = gl.exp2(top_PN - base_N[None, :])
            sum_PN *= keep_PN
            acc_PNE *= keep_PN[:, :, None]
        written: gl.constexpr = gl.SliceLayout(0, row_layout(1, SLICES * TALL, E))
        rows: gl.constexpr = gl.SliceLayout(1, written)
        acc_NE = gl.convert_layout(gl.sum(acc_PNE, axis=0), written)
        sum_N = gl.convert_layout(gl.sum(sum_PN, axis=0), rows)
        n_N = gl.arange(0, BLOCK_N, rows)
        e_E = gl.arange(0, E, gl.SliceLayout(0, written))
        here_N = n_N < R * GROUP
        head_N = ((request * R + n_N // GROUP) * C + head) * GROUP + n_N % GROUP
        part_N = head_N.to(gl.int64) * gl.num_programs(0) + split
        # A row that saw nothing has a sum of 0 and a top of -inf: its part is 0, its weight -inf.
        whole_N = gl.where(sum_N > 0.0, sum_N, 1.0)
        mean_NE = (acc_NE / whole_N[:, None]).to(part_ptr.dtype.element_ty)
        gl.store(part_ptr + part_N[:, None] * E + e_E[None, :], mean_NE, mask=here_N[:, None])
        if not DIRECT:
            weight_N = gl.convert_layout(top_N, rows) + gl.log2(whole_N)
            gl.store(weight_ptr + part_N, weight_N, mask=here_N)
