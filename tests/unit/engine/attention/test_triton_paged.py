"""The Triton backend equals the reference backend, on the same pool and the same plans."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="the backend is Triton's")

from engine.attention.base import Block, Ragged
from engine.attention.sdpa import SdpaBackend
from engine.attention.triton_paged import TritonBackend
from engine.errors import EngineError
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.models.seeded import tiny_config

HEADS, KV_HEADS, WIDTH = 4, 2, 16
CONFIG = tiny_config(hidden=64)
SLOTS, COLUMNS = 700, 160
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Twins:
    """Two equal pools over one table of requests, one for each backend."""

    def __init__(self, lengths: list[int]) -> None:
        self.generator = torch.Generator().manual_seed(11)
        self.table = RequestTable(rows=len(lengths) + 1, columns=COLUMNS, device=DEVICE)
        order = (torch.randperm(SLOTS - 1, generator=self.generator) + 1).tolist()
        self.rows: list[int] = []
        for length in lengths:
            row = self.table.take_row()
            self.table.write(row, 0, order[:length])
            order = order[length:]
            self.rows.append(row)
        self.free = order
        pools = [
            KVPool(CONFIG, num_slots=SLOTS, dtype=torch.float32, device=DEVICE) for _ in range(2)
        ]
        for tensors in zip(pools[0].keys_ZCE, pools[1].keys_ZCE, strict=True):
            self.share(*tensors)
        for tensors in zip(pools[0].values_ZCE, pools[1].values_ZCE, strict=True):
            self.share(*tensors)
        self.pools = pools
        self.reference = SdpaBackend(pools[0], self.table)
        self.tested = TritonBackend(pools[1], self.table)

    def share(self, first: Tensor, second: Tensor) -> None:
        first.copy_(torch.randn(first.shape, generator=self.generator))
        second.copy_(first)

    def check_equal(self, work: Block | Ragged, rows: int) -> None:
        q, k, v = (
            torch.randn(rows, heads, WIDTH, generator=self.generator).to(DEVICE)
            for heads in (HEADS, KV_HEADS, KV_HEADS)
        )
        if isinstance(work, Block):
            plans = self.reference.plan_block(work), self.tested.plan_block(work)
        else:
            plans = self.reference.plan_ragged(work), self.tested.plan_ragged(work)
        wanted, got = (plan.attend(1, q, k, v) for plan in plans)
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
        assert torch.equal(self.pools[0].keys_ZCE[1], self.pools[1].keys_ZCE[1])
        assert torch.equal(self.pools[0].values_ZCE[1], self.pools[1].values_ZCE[1])


def block(twins: Twins, prefixes: list[int], rows: int, tail: int, *, slack: int = 0) -> Block:
    requests = len(prefixes)
    mask = torch.rand(requests, rows, tail, generator=twins.generator) < 0.5
    own = torch.arange(rows) + tail - rows
    mask[:, torch.arange(rows), own] = True
    tails = torch.tensor(twins.free[: requests * tail]).view(requests, tail)
    return Block(
        req_rows_B=torch.tensor(twins.rows, device=DEVICE),
        prefix_lens_B=torch.tensor(prefixes, device=DEVICE),
        slots_BR=tails.to(DEVICE)[:, tail - rows :],
        tail_slots_BW=tails.to(DEVICE),
        mask_BRW=mask.to(DEVICE),
        max_prefix=max(prefixes) + slack,
    )


@pytest.mark.parametrize(
    ("prefixes", "rows", "tail"),
    [([70, 3], 1, 1), ([0, 64, 127], 6, 6), ([9], 2, 4), ([130], 8, 64)],
)
def test_blocks(prefixes: list[int], rows: int, tail: int) -> None:
    twins = Twins(prefixes)
    twins.check_equal(block(twins, prefixes, rows, tail, slack=9), len(prefixes) * rows)


@pytest.mark.parametrize(
    ("prefixes", "extends"), [((0,), (70,)), ((0, 65, 3), (1, 40, 0)), ((100, 0), (3, 33))]
)
def test_ragged(prefixes: tuple[int, ...], extends: tuple[int, ...]) -> None:
    twins = Twins([prefix + extend for prefix, extend in zip(prefixes, extends, strict=True)])
    work = Ragged(req_rows=tuple(twins.rows), prefix_lens=prefixes, extend_lens=extends)
    twins.check_equal(work, sum(extends))


@pytest.mark.parametrize("rows", [1, 2])
def test_slots_that_are_columns_of_a_longer_tail(rows: int) -> None:
    """A draft step writes to some columns of its tail: a view with gaps, of several requests."""
    twins = Twins([3, 70, 12])
    work = block(twins, [3, 70, 12], rows, 5)
    assert not work.slots_BR.is_contiguous()
    twins.check_equal(work, 3 * rows)


def test_idle_rank() -> None:
    twins = Twins([4])
    empty = torch.zeros(0, dtype=torch.int64, device=DEVICE)
    work = Block(
        req_rows_B=empty,
        prefix_lens_B=empty,
        slots_BR=empty.view(0, 3),
        tail_slots_BW=empty.view(0, 3),
        mask_BRW=torch.zeros(0, 3, 3, dtype=torch.bool, device=DEVICE),
        max_prefix=8,
    )
    q = torch.zeros(0, HEADS, WIDTH, device=DEVICE)
    kv = torch.zeros(0, KV_HEADS, WIDTH, device=DEVICE)
    assert twins.tested.plan_block(work).attend(0, q, kv, kv).shape == q.shape
    ragged = Ragged(req_rows=(), prefix_lens=(), extend_lens=())
    assert twins.tested.plan_ragged(ragged).attend(0, q, kv, kv).shape == q.shape


def test_too_many_tokens_in_flight() -> None:
    twins = Twins([4])
    with pytest.raises(EngineError, match="lower num_steps"):
        twins.tested.plan_block(block(twins, [4], 1, 65))
