"""The prefix cache: what it returns really holds those tokens, and no slot is lost or shared."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.errors import OutOfSlots
from engine.kv.prefix import Match, PrefixCache
from engine.kv.slots import SlotAllocator

BLOCK = 2
POOL = 40
TEXTS = st.lists(st.integers(0, 1), min_size=1, max_size=9)


class Prefixes(RuleBasedStateMachine):
    """`written[slot]` is what a slot's KV depends on: the tokens up to it, and `shift` more."""

    @initialize(shift=st.integers(0, 1))
    def start(self, shift: int) -> None:
        self.shift = shift
        self.allocator = SlotAllocator(POOL)
        self.cache = PrefixCache(self.allocator, block=BLOCK, shift=shift)
        self.live: list[tuple[list[int], list[int], Match]] = []
        self.written: dict[int, tuple[int, ...]] = {}

    @rule(tokens=TEXTS)
    def admit(self, tokens: list[int]) -> None:
        match = self.cache.match(tokens)
        assert match.length < len(tokens), "one token is always left to compute"
        for position, slot in enumerate(match.slots):
            assert self.written[slot] == tuple(tokens[: position + 1 + self.shift])
        need = len(tokens) - match.length
        if need > self.allocator.free:
            self.cache.evict(need - self.allocator.free)
        try:
            fresh = self.allocator.allocate(need)
        except OutOfSlots:
            self.cache.unlock(match)
            return
        slots = [*match.slots, *fresh]
        for position in range(match.length, len(tokens)):
            self.written[slots[position]] = tuple(tokens[: position + 1 + self.shift])
        self.live.append((tokens, slots, match))

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        if not self.live:
            return
        tokens, slots, match = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        computed = data.draw(st.integers(match.length, len(slots)))
        self.allocator.release(slots[computed:])
        self.allocator.release(self.cache.insert(tokens, slots[:computed], match))
        self.cache.unlock(match)

    @rule(wanted=st.integers(1, POOL))
    def evict(self, wanted: int) -> None:
        before = self.allocator.free
        freed = self.cache.evict(wanted)
        assert self.allocator.free == before + freed

    @invariant()
    def every_slot_has_one_owner(self) -> None:
        if not hasattr(self, "cache"):
            return
        mine = [slot for _, slots, match in self.live for slot in slots[match.length :]]
        assert len(mine) == len(set(mine))
        assert len(mine) + self.cache.size == self.allocator.owned
        assert self.allocator.free + self.allocator.owned == self.allocator.capacity
        for _, slots, match in self.live:
            assert all(self.allocator.is_owned(slot) for slot in slots[: match.length])


TestPrefixes = Prefixes.TestCase
TestPrefixes.settings = settings(deadline=None, derandomize=True)


def keep(cache: PrefixCache, tokens: list[int]) -> list[int]:
    match = cache.match(tokens)
    slots = [*match.slots, *cache.allocator.allocate(len(tokens) - match.length)]
    cache.allocator.release(cache.insert(tokens, slots, match))
    cache.unlock(match)
    return slots


def test_a_finished_text_is_found_again() -> None:
    cache = PrefixCache(SlotAllocator(100), block=4)
    slots = keep(cache, list(range(10)))
    match = cache.match([*range(9), 77, 78])
    assert match.slots == tuple(slots[:8])
    cache.unlock(match)


def test_the_last_token_is_computed_even_if_all_is_kept() -> None:
    cache = PrefixCache(SlotAllocator(100), block=4)
    keep(cache, list(range(8)))
    assert cache.match(list(range(8))).length == 4
    assert cache.match(list(range(9))).length == 8


def test_shifted_drafts_match_one_token_further() -> None:
    """Position 3 of a shifted draft was computed from token 4: another token 4 is no match."""
    cache = PrefixCache(SlotAllocator(100), block=4, shift=1)
    keep(cache, [0, 1, 2, 3, 4, 5])
    assert cache.match([0, 1, 2, 3, 9, 5]).length == 0
    assert cache.match([0, 1, 2, 3, 4, 9]).length == 4


def test_locked_blocks_are_not_evicted_and_the_oldest_go_first() -> None:
    allocator = SlotAllocator(100)
    cache = PrefixCache(allocator, block=4)
    for start in (0, 100, 200):
        keep(cache, list(range(start, start + 9)))
    assert cache.match(list(range(9))).length == 8, "and stays locked"
    assert cache.evict(1) == 4
    assert cache.match(list(range(100, 109))).length == 4, "its second block went first"
    assert cache.evict(1000) == 8
    assert allocator.owned == cache.size == 12


def test_unlocking_twice_is_caught() -> None:
    cache = PrefixCache(SlotAllocator(100), block=4)
    keep(cache, list(range(9)))
    match = cache.match(list(range(9)))
    cache.unlock(match)
    with pytest.raises(AssertionError, match="more often"):
        cache.unlock(match)
