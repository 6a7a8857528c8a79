"""KVMemory: the table, the allocator and the prefix cache as one account per request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import OutOfSlots
from engine.kv.prefix import Match, PrefixCache
from engine.kv.slots import SlotAllocator
from engine.kv.table import RequestTable

GROWTH = 32
"""Columns by which a lease grows at a time, as long as the pool has them and it can use them."""


@dataclass(slots=True, eq=False)
class Lease:
    """What one request holds: a table row whose first `columns` columns have slots.

    The first `match.length` of them belong to the prefix cache. It never needs more than `longest`.
    """

    row: int
    columns: int
    longest: int
    match: Match


class KVMemory:
    """Every slot is free, leased or cached, and free + leased + cached = pool."""

    def __init__(
        self, table: RequestTable, allocator: SlotAllocator, prefix: PrefixCache | None
    ) -> None:
        self.table = table
        self.allocator = allocator
        self.prefix = prefix

    def admit(self, tokens: Sequence[int], *, columns: int, longest: int) -> Lease | None:
        """A row with `columns` slots, the cached prefix first; None if there is no room.

        It may grow to `longest` columns, and ahead of its needs no further.
        """
        if not self.table.free:
            return None
        match = Match((), ()) if self.prefix is None else self.prefix.match(tokens)
        try:
            slots = self._allocate(columns - match.length)
        except OutOfSlots:
            self._unlock(match)
            return None
        row = self.table.take_row()
        self.table.write(row, 0, [*match.slots, *slots])
        return Lease(row=row, columns=columns, longest=longest, match=match)

    def grow(self, leases: Sequence[tuple[Lease, int]]) -> None:
        """Every lease has at least so many columns; OutOfSlots leaves all as they were."""
        missing = [(lease, columns - lease.columns) for lease, columns in leases]
        missing = [(lease, count) for lease, count in missing if count > 0]
        if not missing:
            return
        missing = self._ahead(missing)
        slots = self._allocate(sum(count for _, count in missing))
        rows, columns = [], []
        for lease, count in missing:
            rows += [lease.row] * count
            columns += range(lease.columns, lease.columns + count)
        try:
            self.table.write_many(rows, columns, slots)
        except BaseException:
            self.allocator.release(slots)
            raise
        for lease, count in missing:
            lease.columns += count

    def release(self, lease: Lease, tokens: Sequence[int], *, committed: int) -> None:
        """The request is gone; the KV of tokens[:committed] may be found again by others."""
        slots = self.table.read(lease.row, 0, lease.columns)
        if self.prefix is None:
            self.allocator.release(slots)
        else:
            left = self.prefix.insert(tokens, slots[:committed], lease.match)
            self.allocator.release(left + slots[max(committed, lease.match.length) :])
        self._unlock(lease.match)
        self.table.give_back(lease.row)

    def leased(self, leases: Sequence[Lease]) -> int:
        """How many slots these leases own."""
        return sum(lease.columns - lease.match.length for lease in leases)

    @property
    def cached(self) -> int:
        """How many slots the prefix cache owns."""
        return 0 if self.prefix is None else self.prefix.size

    def _ahead(self, missing: list[tuple[Lease, int]]) -> list[tuple[Lease, int]]:
        """Some columns more, if they are free: a table write for every iteration is a slow one."""
        ahead = [
            (lease, max(count, min(count + GROWTH, lease.longest - lease.columns)))
            for lease, count in missing
        ]
        return ahead if sum(count for _, count in ahead) <= self.allocator.free else missing

    def _allocate(self, count: int) -> list[int]:
        missing = count - self.allocator.free
        if missing > 0 and self.prefix is not None:
            self.prefix.evict(missing)
        return self.allocator.allocate(count)

    def _unlock(self, match: Match) -> None:
        if self.prefix is not None:
            self.prefix.unlock(match)
