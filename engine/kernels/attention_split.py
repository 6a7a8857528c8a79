"""attention_split: one split of attention over a paged cache, the portable kernel.

A split of one block has its committed columns in registers before the producer of the queries is
done; longer ones loop. engine.kernels.attention_ring is the other kernel of paged_attention.

R query rows per request   Q query heads   C key/value heads   E head width
N rows of one key/value head, R * Q / C of them used   Y columns of a block
"""

import triton
import triton.language as tl

from engine.kernels.launch import prefetch, release_successor, wait_for_producers


@triton.jit
def _load_slots(row_ptr, tail_ptr, y_Y, prefix, end, HAS_TAIL: tl.constexpr):
    """Returns the slot of every column, the pad slot beyond the end."""
    slot_Y = tl.load(row_ptr + y_Y, mask=y_Y < prefix, other=0).to(tl.int64)
    if HAS_TAIL:
        in_tail_Y = (y_Y >= prefix) & (y_Y < end)
        slot_Y += tl.load(tail_ptr + y_Y - prefix, mask=in_tail_Y, other=0).to(tl.int64)
    return slot_Y


@triton.jit
def _load_columns(
    k_ptr, v_ptr, slot_Y, here_Y, STRIDE: tl.constexpr, E: tl.constexpr, BLOCK_E: tl.constexpr
):
    """Returns keys (E, Y) and values (Y, E) of the slots here, zeros of the others."""
    e_E = tl.arange(0, BLOCK_E)
    at_Y = slot_Y.to(tl.int64) * STRIDE
    here_EY = here_Y[None, :] & (e_E[:, None] < E)
    here_YE = here_Y[:, None] & (e_E[None, :] < E)
    k_EY = tl.load(k_ptr + at_Y[None, :] + e_E[:, None], mask=here_EY, other=0.0)
    v_YE = tl.load(v_ptr + at_Y[:, None] + e_E[None, :], mask=here_YE, other=0.0)
    return k_EY, v_YE


@triton.jit
def _attend_block(
    q_NE, k_ptr, v_ptr, row_ptr, tail_ptr, word_N, start, prefix, end, top_N, sum_N,
    acc_NE, scale, STRIDE: tl.constexpr, E: tl.constexpr, BLOCK_E: tl.constexpr,
    BLOCK_Y: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """Folds the columns [start, start + BLOCK_Y) into the running softmax of each row."""
    y_Y = start + tl.arange(0, BLOCK_Y)
    e_E = tl.arange(0, BLOCK_E)
    slot_Y = _load_slots(row_ptr, tail_ptr, y_Y, prefix, end, TAIL)
    at_Y = slot_Y * STRIDE
    k_EY = tl.load(k_ptr + at_Y[None, :] + e_E[:, None], mask=e_E[:, None] < E, other=0.0)
    v_YE = tl.load(v_ptr + at_Y[:, None] + e_E[None, :], mask=e_E[None, :] < E, other=0.0)
    return _fold_block(
        q_NE, k_EY, v_YE, y_Y, word_N, prefix, end, top_N, sum_N, acc_NE, scale, TAIL
    )


@triton.jit
def _fold_block(
    q_NE, k_EY, v_YE, y_Y, word_N, prefix, end, top_N, sum_N, acc_NE, scale, TAIL: tl.constexpr
):
    """Folds these columns into the running softmax of each row."""
    score_NY = tl.dot(q_NE, k_EY, input_precision="ieee") * scale
    if TAIL:
        in_tail_Y = (y_Y >= prefix) & (y_Y < end)
        bit_Y = tl.minimum(tl.maximum(y_Y - prefix, 0), 63).to(tl.int64)
        seen_NY = ((word_N[:, None] >> bit_Y[None, :]) & 1) & in_tail_Y[None, :].to(tl.int64)
        score_NY = tl.where((y_Y < prefix)[None, :] | (seen_NY != 0), score_NY, float("-inf"))
    new_top_N = tl.maximum(top_N, tl.max(score_NY, axis=1))
    # A row that has seen nothing yet keeps -inf; subtracting it from itself would be NaN.
    base_N = tl.where(new_top_N == float("-inf"), 0.0, new_top_N)
    p_NY = tl.exp2(score_NY - base_N[:, None])
    keep_N = tl.exp2(top_N - base_N)
    sum_N = sum_N * keep_N + tl.sum(p_NY, axis=1)
    acc_NE = acc_NE * keep_N[:, None]
    acc_NE = tl.dot(p_NY.to(v_YE.dtype), v_YE, acc_NE, input_precision="ieee")
    return new_top_N, sum_N, acc_NE


@triton.jit
def attend_split(
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
    R: tl.constexpr,
    GROUP: tl.constexpr,
    C: tl.constexpr,
    E: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_Y: tl.constexpr,
    ONE: tl.constexpr,
    DIRECT: tl.constexpr,
    INVARIANT: tl.constexpr,
    CHAINED: tl.constexpr,
):
    """One split of one key/value head: N = R * GROUP rows share every key read.

    With DIRECT there is one split, and its part is the output itself. With ONE a split is one
    block, whose committed columns are in registers before the producer is done.
    """
    release_successor(CHAINED)
    split = tl.program_id(0)
    head = tl.program_id(1)
    request = tl.program_id(2)
    prefix = tl.load(prefix_ptr + request).to(tl.int32)
    end = prefix + tail
    first = split * columns
    if first >= end:
        return
    STRIDE: tl.constexpr = C * E
    last = tl.minimum(first + columns, end)
    row_ptr = table_ptr + tl.load(row_ptr + request).to(tl.int64) * table_stride
    tail_ptr += request * tail
    k_ptr += head * E
    v_ptr += head * E
    if ONE:
        y_Y = first + tl.arange(0, BLOCK_Y)
        old_Y, new_Y = y_Y < prefix, (y_Y >= prefix) & (y_Y < end)
        slot_Y = tl.load(row_ptr + y_Y, mask=old_Y, other=0)
        new_slot_Y = tl.load(tail_ptr + y_Y - prefix, mask=new_Y, other=0)
        k_EY, v_YE = _load_columns(k_ptr, v_ptr, slot_Y, old_Y, STRIDE, E, BLOCK_E)
    elif CHAINED:
        LINES: tl.constexpr = BLOCK_E // 64 if BLOCK_E > 64 else 1
        # Committed columns were written before this forward began: read ahead of the producer.
        y_Y = first + tl.arange(0, BLOCK_Y)
        slot_Y = _load_slots(row_ptr, tail_ptr, y_Y, prefix, end, False)
        line_Y = slot_Y[:, None] * STRIDE + tl.arange(0, LINES)[None, :] * 64
        prefetch(k_ptr + line_Y)
        prefetch(v_ptr + line_Y)
    wait_for_producers(CHAINED)

    n_N = tl.arange(0, BLOCK_N)
    e_E = tl.arange(0, BLOCK_E)
    here_N = n_N < R * GROUP
    token_N = request * R + n_N // GROUP
    head_N = (token_N * C + head) * GROUP + n_N % GROUP
    here_NE = here_N[:, None] & (e_E[None, :] < E)
    q_NE = tl.load(q_ptr + head_N[:, None] * E + e_E[None, :], mask=here_NE, other=0.0)
    word_N = tl.load(word_ptr + token_N, mask=here_N, other=0)

    top_N = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    sum_N = tl.zeros((BLOCK_N,), tl.float32)
    acc_NE = tl.zeros((BLOCK_N, BLOCK_E), tl.float32)
    if ONE:
        if last > prefix:
            new_k_EY, new_v_YE = _load_columns(k_ptr, v_ptr, new_slot_Y, new_Y, STRIDE, E, BLOCK_E)
            k_EY = tl.where(new_Y[None, :], new_k_EY, k_EY)
            v_YE = tl.where(new_Y[:, None], new_v_YE, v_YE)
        top_N, sum_N, acc_NE = _fold_block(
            q_NE, k_EY, v_YE, y_Y, word_N, prefix, end, top_N, sum_N, acc_NE, scale, True
        )
    else:
        # Without a mask the compiler may fuse scale and difference, which rounds once less.
        whole = first if INVARIANT else tl.minimum(last, prefix // BLOCK_Y * BLOCK_Y)
        for start in tl.range(first, whole, BLOCK_Y):
            top_N, sum_N, acc_NE = _attend_block(
                q_NE, k_ptr, v_ptr, row_ptr, tail_ptr, word_N, start, prefix, end, top_N,
                sum_N, acc_NE, scale, STRIDE, E, BLOCK_E, BLOCK_Y, False,
            )  # fmt: skip
        for start in tl.range(tl.maximum(first, whole), last, BLOCK_Y):
            top_N, sum_N, acc_NE = _attend_block(
                q_NE, k_ptr, v_ptr, row_ptr, tail_ptr, word_N, start, prefix, end, top_N,
                sum_N, acc_NE, scale, STRIDE, E, BLOCK_E, BLOCK_Y, True,
            )  # fmt: skip
    part_N = head_N.to(tl.int64) * tl.num_programs(0) + split
    # A row that saw nothing has a sum of 0 and a top of -inf: its part is 0, its weight -inf.
    whole_N = tl.where(sum_N > 0.0, sum_N, 1.0)
    part_NE = part_ptr + part_N[:, None] * E + e_E[None, :]
    mean_NE = acc_NE / whole_N[:, None]
    tl.store(part_NE, mean_NE.to(part_ptr.dtype.element_ty), mask=here_NE)
    if not DIRECT:
        tl.store(weight_ptr + part_N, top_N + tl.log2(whole_N), mask=here_N)
