"""PrefixCache: slots of finished texts, found again by the tokens they hold.

The tree's nodes are blocks of consecutive tokens. A draft that reads ids shifted by one has, at
position p, KV that depends on token p+1 as well; the key of a block then reaches one token
further, so that a match is valid for target and draft alike.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from engine.kv.slots import SlotAllocator


@dataclass(slots=True, eq=False)
class _Block:
    slots: tuple[int, ...]
    parent: _Block | None
    key: tuple[int, ...]
    children: dict[tuple[int, ...], _Block] = field(default_factory=dict)
    users: int = 0
    last_used: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A locked prefix: its slots stay put until `PrefixCache.unlock`."""

    slots: tuple[int, ...]
    blocks: tuple[_Block, ...]

    @property
    def length(self) -> int:
        """How many positions need not be computed."""
        return len(self.slots)


class PrefixCache:
    """Owns the slots of the blocks it keeps; gives them back when they are needed elsewhere."""

    def __init__(self, allocator: SlotAllocator, *, block: int = 16, shift: int = 0) -> None:
        self.allocator = allocator
        self.block = block
        self.shift = shift
        self._root = _Block(slots=(), parent=None, key=())
        self._clock = 0
        self.size = 0

    def match(self, tokens: Sequence[int]) -> Match:
        """The longest kept prefix of `tokens`, locked; its last token is always left to compute."""
        self._clock += 1
        node, slots, blocks = self._root, [], []
        for start in range(0, len(tokens) - self.block, self.block):
            child = node.children.get(self._key(tokens, start))
            if child is None:
                break
            child.users += 1
            child.last_used = self._clock
            slots.extend(child.slots)
            blocks.append(child)
            node = child
        return Match(tuple(slots), tuple(blocks))

    def unlock(self, match: Match) -> None:
        """The match's slots may be evicted again."""
        for block in match.blocks:
            assert block.users > 0, "a block is unlocked more often than it was matched"
            block.users -= 1

    def insert(self, tokens: Sequence[int], slots: Sequence[int], match: Match) -> list[int]:
        """Whole blocks of `tokens` are kept; returns the slots the caller still owns.

        `slots` hold the KV of tokens[:len(slots)], of which the first `match.length` are the
        cache's own. What the cache takes, it owns; a block it has already stays as it is.
        """
        self._clock += 1
        node, left = self._root, []
        whole = self._whole_blocks(tokens, slots)
        for start in range(0, whole, self.block):
            key = self._key(tokens, start)
            mine = tuple(slots[start : start + self.block])
            child = node.children.get(key)
            if child is None:
                child = _Block(slots=mine, parent=node, key=key)
                node.children[key] = child
                self.size += self.block
            elif start >= match.length:
                left.extend(mine)
            child.last_used = self._clock
            node = child
        return left + list(slots[max(whole, match.length) :])

    def evict(self, wanted: int) -> int:
        """At least `wanted` slots are free again if unlocked blocks allow it; returns how many."""
        freed = 0
        # Least recently used first; the counter breaks ties, blocks have no order of their own.
        order = count()
        heap = [(leaf.last_used, next(order), leaf) for leaf in self._leaves() if not leaf.users]
        heapq.heapify(heap)
        while freed < wanted and heap:
            _, _, oldest = heapq.heappop(heap)
            parent = oldest.parent
            assert parent is not None, "the root is never evicted"
            del parent.children[oldest.key]
            self.allocator.release(oldest.slots)
            self.size -= self.block
            freed += self.block
            if parent is not self._root and not parent.children and not parent.users:
                heapq.heappush(heap, (parent.last_used, next(order), parent))
        return freed

    def _whole_blocks(self, tokens: Sequence[int], slots: Sequence[int]) -> int:
        """How many positions fill blocks whose keys are known to the last token."""
        known = min(len(slots), len(tokens) - self.shift)
        return max(known, 0) // self.block * self.block

    def _key(self, tokens: Sequence[int], start: int) -> tuple[int, ...]:
        return tuple(tokens[start : start + self.block + self.shift])

    def _leaves(self) -> list[_Block]:
        found, stack = [], list(self._root.children.values())
        while stack:
            block = stack.pop()
            stack.extend(block.children.values())
            if not block.children:
                found.append(block)
        return found
