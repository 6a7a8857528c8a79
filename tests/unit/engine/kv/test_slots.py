"""The allocator: free + owned = pool after any sequence of operations; no slot has two owners."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.errors import EngineError, OutOfSlots
from engine.kv.slots import PAD_SLOT, SlotAllocator

POOL = 24


class Slots(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.allocator = SlotAllocator(POOL)
        self.held: list[list[int]] = []

    @rule(count=st.integers(0, POOL))
    def allocate(self, count: int) -> None:
        free = self.allocator.free
        if count > free:
            with pytest.raises(OutOfSlots, match=f"{count} KV slots are needed and {free} of"):
                self.allocator.allocate(count)
            assert self.allocator.free == free
        else:
            self.held.append(self.allocator.allocate(count))

    @rule(data=st.data())
    def release_some(self, data: st.DataObject) -> None:
        if self.held:
            group = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
            keep = data.draw(st.integers(0, len(group)))
            self.allocator.release(group[keep:])
            if keep:
                self.held.append(group[:keep])

    @invariant()
    def free_and_owned_are_the_pool(self) -> None:
        assert self.allocator.free + self.allocator.owned == self.allocator.capacity == POOL - 1
        mine = [slot for group in self.held for slot in group]
        assert len(mine) == len(set(mine)) == self.allocator.owned
        assert PAD_SLOT not in mine
        assert all(self.allocator.is_owned(slot) for slot in mine)


TestSlots = Slots.TestCase
TestSlots.settings = settings(deadline=None, derandomize=True)


def test_fresh_pool_gives_neighbours() -> None:
    assert SlotAllocator(9).allocate(4) == [1, 2, 3, 4]


def test_double_release_is_caught() -> None:
    allocator = SlotAllocator(9)
    slots = allocator.allocate(2)
    allocator.release(slots)
    with pytest.raises(AssertionError, match="nobody owns it"):
        allocator.release(slots)


def test_pool_without_room_is_refused() -> None:
    with pytest.raises(EngineError, match=r"num_slots=1: .* raise num_slots"):
        SlotAllocator(1)
