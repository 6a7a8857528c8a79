"""The reference backend over a paged pool equals dense attention written out by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.attention.base import Block, Ragged
from engine.attention.sdpa import SdpaBackend
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.models.seeded import tiny_config

HEADS, KV_HEADS, WIDTH = 4, 2, 16
CONFIG = tiny_config(hidden=64)
SLOTS, COLUMNS = 120, 40


def dense(q_QE: Tensor, k_YCE: Tensor, v_YCE: Tensor, seen_Y: Tensor) -> Tensor:
    """(Q, E): one query row over the keys it sees, in float64."""
    out = []
    for head in range(HEADS):
        group = head // (HEADS // KV_HEADS)
        keys = k_YCE[:, group].double()
        scores = keys @ q_QE[head].double() / WIDTH**0.5
        weights = scores.masked_fill(~seen_Y, -torch.inf).softmax(dim=0)
        out.append(weights @ v_YCE[:, group].double())
    return torch.stack(out).float()


class Memory:
    """A pool with random contents, and requests whose slots are scattered over it."""

    def __init__(self, lengths: list[int], *, device: str = "cpu") -> None:
        self.device = device
        self.generator = torch.Generator().manual_seed(sum(lengths) + len(lengths))
        self.pool = KVPool(CONFIG, num_slots=SLOTS, dtype=torch.float32, device=device)
        for layer in range(CONFIG.layers):
            for tensor in (self.pool.keys_ZCE[layer], self.pool.values_ZCE[layer]):
                tensor.copy_(self.random(SLOTS, KV_HEADS, WIDTH))
        self.table = RequestTable(rows=len(lengths) + 1, columns=COLUMNS, device=device)
        order = (torch.randperm(SLOTS - 1, generator=self.generator) + 1).tolist()
        self.rows: list[int] = []
        self.slots: list[list[int]] = []
        for length in lengths:
            row = self.table.take_row()
            mine, order = order[:length], order[length:]
            self.table.write(row, 0, mine)
            self.rows.append(row)
            self.slots.append(mine)
        self.free = order

    def random(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator).to(self.device)

    def fresh(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        sizes = (HEADS, KV_HEADS, KV_HEADS)
        q, k, v = (self.random(rows, heads, WIDTH) for heads in sizes)
        return q, k, v


requests = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 8)), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(requests=requests, layer=st.integers(0, 1))
def test_ragged_prefill(requests: list[tuple[int, int]], layer: int) -> None:
    memory = Memory([prefix + extend for prefix, extend in requests])
    prefixes, extends = zip(*requests, strict=True)
    total = sum(extends)
    q, k, v = memory.fresh(total)
    plan = SdpaBackend(memory.pool, memory.table).plan_ragged(
        Ragged(req_rows=tuple(memory.rows), prefix_lens=prefixes, extend_lens=extends)
    )
    got = plan.attend(layer, q, k, v)
    assert got.shape == q.shape
    start = 0
    for (prefix, extend), slots in zip(requests, memory.slots, strict=True):
        keys = memory.pool.keys_ZCE[layer][slots]
        values = memory.pool.values_ZCE[layer][slots]
        torch.testing.assert_close(keys[prefix:], k[start : start + extend])
        for row in range(extend):
            seen = torch.arange(prefix + extend) <= prefix + row
            wanted = dense(q[start + row], keys, values, seen)
            torch.testing.assert_close(got[start + row], wanted, rtol=1e-4, atol=1e-5)
        start += extend


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], int, list[Tensor]]:
    """Prefix lengths, a width, and for each request an ancestor mask with a true diagonal."""
    prefixes = draw(st.lists(st.integers(0, 10), min_size=1, max_size=3))
    width = draw(st.integers(1, 6))
    masks = []
    for _ in prefixes:
        mask = torch.eye(width, dtype=torch.bool)
        for node in range(1, width):
            mask[node] |= mask[draw(st.integers(0, node - 1))]
        masks.append(mask)
    return prefixes, width, masks


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tree=trees(), slack=st.integers(0, 5))
def test_tree_verify(tree: tuple[list[int], int, list[Tensor]], slack: int) -> None:
    """Every node sees the committed prefix, its ancestors and itself; no sibling, no neighbour."""
    prefixes, width, masks = tree
    memory = Memory([prefix + width for prefix in prefixes])
    tails = torch.tensor([slots[p:] for slots, p in zip(memory.slots, prefixes, strict=True)])
    q, k, v = memory.fresh(len(prefixes) * width)
    plan = SdpaBackend(memory.pool, memory.table).plan_block(
        Block(
            req_rows_B=torch.tensor(memory.rows),
            prefix_lens_B=torch.tensor(prefixes),
            slots_BR=tails,
            tail_slots_BW=tails,
            mask_BRW=torch.stack(masks),
            # A graph is planned for the longest request it may meet, not for these.
            max_prefix=max(prefixes) + slack,
        )
    )
    got = plan.attend(1, q, k, v)
    for request, (prefix, mask) in enumerate(zip(prefixes, masks, strict=True)):
        slots = memory.slots[request]
        keys, values = memory.pool.keys_ZCE[1][slots], memory.pool.values_ZCE[1][slots]
        for node in range(width):
            seen = torch.cat((torch.ones(prefix, dtype=torch.bool), mask[node]))
            row = request * width + node
            wanted = dense(q[row], keys, values, seen)
            torch.testing.assert_close(got[row], wanted, rtol=1e-4, atol=1e-5)


def test_draft_decode_reads_more_than_it_writes() -> None:
    """Two branches write two slots each step and read their own ancestors among earlier ones."""
    memory = Memory([9])
    earlier, now = memory.slots[0][5:7], memory.slots[0][7:9]
    mask = torch.tensor([[[True, False, True, False], [True, False, False, True]]])
    q, k, v = memory.fresh(2)
    plan = SdpaBackend(memory.pool, memory.table).plan_block(
        Block(
            req_rows_B=torch.tensor(memory.rows),
            prefix_lens_B=torch.tensor([5]),
            slots_BR=torch.tensor([now]),
            tail_slots_BW=torch.tensor([earlier + now]),
            mask_BRW=mask,
            max_prefix=5,
        )
    )
    got = plan.attend(0, q, k, v)
    slots = memory.slots[0]
    keys, values = memory.pool.keys_ZCE[0][slots], memory.pool.values_ZCE[0][slots]
    for branch in range(2):
        seen = torch.cat((torch.ones(5, dtype=torch.bool), mask[0, branch]))
        wanted = dense(q[branch], keys, values, seen)
        torch.testing.assert_close(got[branch], wanted, rtol=1e-4, atol=1e-5)


def test_padded_rows_touch_the_pad_slot_alone() -> None:
    memory = Memory([4])
    before = [tensor.clone() for tensor in memory.pool.keys_ZCE]
    q, k, v = memory.fresh(2)
    plan = SdpaBackend(memory.pool, memory.table).plan_block(
        Block(
            req_rows_B=torch.tensor([0]),
            prefix_lens_B=torch.tensor([0]),
            slots_BR=torch.zeros(1, 2, dtype=torch.int64),
            tail_slots_BW=torch.zeros(1, 2, dtype=torch.int64),
            mask_BRW=torch.eye(2, dtype=torch.bool)[None],
            max_prefix=4,
        )
    )
    assert plan.attend(0, q, k, v).isfinite().all()
    assert torch.equal(memory.pool.keys_ZCE[0][1:], before[0][1:])
    assert torch.equal(memory.pool.keys_ZCE[1], before[1])


@pytest.mark.parametrize("shape", ["ragged", "block"])
def test_a_forward_without_rows(shape: str) -> None:
    """An idle rank: no rows in, no rows out, nothing written."""
    memory = Memory([3])
    before = memory.pool.keys_ZCE[0].clone()
    backend = SdpaBackend(memory.pool, memory.table)
    none = torch.zeros(0, dtype=torch.int64)
    if shape == "ragged":
        plan = backend.plan_ragged(Ragged(req_rows=(), prefix_lens=(), extend_lens=()))
    else:
        plan = backend.plan_block(
            Block(
                req_rows_B=none,
                prefix_lens_B=none,
                slots_BR=none.view(0, 3),
                tail_slots_BW=none.view(0, 3),
                mask_BRW=torch.zeros(0, 3, 3, dtype=torch.bool),
                max_prefix=0,
            )
        )
    q, k, v = memory.fresh(0)
    assert plan.attend(0, q, k, v).shape == (0, HEADS, WIDTH)
    assert torch.equal(memory.pool.keys_ZCE[0], before)
