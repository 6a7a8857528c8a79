"""KVMemory: leases grow ahead only into what is free, and free + leased + cached = pool."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.errors import OutOfSlots
from engine.kv.memory import GROWTH, KVMemory, Lease
from engine.kv.prefix import PrefixCache
from engine.kv.slots import SlotAllocator
from engine.kv.table import RequestTable

BLOCK, COLUMNS = 4, 3 * GROWTH


def memory_of(slots: int, *, rows: int = 4, columns: int = COLUMNS) -> KVMemory:
    """Memory of so many slots; all rows but the pad row can be leased."""
    allocator = SlotAllocator(slots + 1)
    table = RequestTable(rows=rows, columns=columns, device="cpu")
    return KVMemory(table, allocator, PrefixCache(allocator, block=BLOCK))


def admitted(memory: KVMemory, tokens: list[int], columns: int, *, longest: int = COLUMNS) -> Lease:
    lease = memory.admit(tokens, columns=columns, longest=longest)
    assert lease is not None
    return lease


def test_a_lease_grows_ahead_into_free_slots() -> None:
    memory = memory_of(200)
    lease = admitted(memory, [1, 2], 4)
    memory.grow([(lease, 5)])
    assert lease.columns == 5 + GROWTH
    slots = memory.table.read(lease.row, 0, lease.columns)
    assert len(set(slots)) == lease.columns
    assert all(memory.allocator.is_owned(slot) for slot in slots)
    taken = memory.allocator.free
    memory.grow([(lease, 5 + GROWTH)])
    assert memory.allocator.free == taken, "what it has already is not taken again"


def test_a_lease_grows_ahead_to_what_its_request_can_need() -> None:
    memory = memory_of(200)
    lease = admitted(memory, [1, 2], 7, longest=11)
    memory.grow([(lease, 8)])
    assert lease.columns == 11


def test_a_pool_that_holds_every_request_is_never_short() -> None:
    """What one has ahead is never what another still needs."""
    memory = memory_of(20 + 40)
    slow = admitted(memory, [1, 2], 4, longest=20)
    fast = admitted(memory, [3, 4], 4, longest=40)
    memory.grow([(slow, 5), (fast, 4)])
    for columns in range(5, 41):
        memory.grow([(slow, 5), (fast, columns)])
    assert (slow.columns, fast.columns, memory.allocator.free) == (20, 40, 0)


def test_growing_ahead_takes_nothing_from_the_cache() -> None:
    """Cached texts give way to what is needed, not to what may be needed later."""
    memory = memory_of(2 * BLOCK + 8)
    text = list(range(2 * BLOCK))
    memory.release(admitted(memory, text, 2 * BLOCK), text, committed=2 * BLOCK)
    assert memory.cached == 2 * BLOCK
    lease = admitted(memory, [90, 91], 4)
    memory.grow([(lease, 6)])
    assert (lease.columns, memory.cached) == (6, 2 * BLOCK)
    memory.grow([(lease, 10)])
    assert (lease.columns, memory.cached) == (10, BLOCK)


def test_growing_beyond_the_table_leaves_all_as_it_was() -> None:
    memory = memory_of(200, columns=8)
    lease = admitted(memory, [1, 2], 6)
    free = memory.allocator.free
    with pytest.raises(IndexError):
        memory.grow([(lease, 9)])
    assert (lease.columns, memory.allocator.free) == (6, free)


class Leases(RuleBasedStateMachine):
    """Requests of few tokens, so that prefixes are shared, in a pool that is often short."""

    @initialize(slots=st.integers(40, 120))
    def start(self, slots: int) -> None:
        self.memory = memory_of(slots)
        self.live: list[tuple[list[int], Lease]] = []

    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=12), window=st.integers(1, 6))
    def admit(self, tokens: list[int], window: int) -> None:
        lease = self.memory.admit(tokens, columns=len(tokens) + window, longest=COLUMNS)
        if lease is not None:
            self.live.append((tokens, lease))

    @rule(more=st.integers(0, 9))
    def grow(self, more: int) -> None:
        wanted = [(lease, min(lease.columns + more, COLUMNS)) for _, lease in self.live]
        before = [lease.columns for _, lease in self.live]
        try:
            self.memory.grow(wanted)
        except OutOfSlots:
            assert [lease.columns for _, lease in self.live] == before
        else:
            assert all(lease.columns >= columns for lease, columns in wanted)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.live:
            tokens, lease = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
            committed = data.draw(st.integers(lease.match.length, len(tokens)))
            self.memory.release(lease, tokens, committed=committed)

    @invariant()
    def the_pool_is_accounted_for(self) -> None:
        if not hasattr(self, "memory"):
            return
        memory, leases = self.memory, [lease for _, lease in self.live]
        free, capacity = memory.allocator.free, memory.allocator.capacity
        assert free + memory.leased(leases) + memory.cached == capacity
        own = [
            slot
            for lease in leases
            for slot in memory.table.read(lease.row, lease.match.length, lease.columns)
        ]
        assert len(own) == len(set(own)) == memory.leased(leases)


TestLeases = Leases.TestCase
TestLeases.settings = settings(deadline=None, derandomize=True, max_examples=40)
