"""SlotAllocator: who owns which row of the KV pools. Free + owned = pool, always."""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import OutOfSlots, SizeError

PAD_SLOT = 0


class SlotAllocator:
    """Hands out slot ids 1..num_slots-1; slot 0 is the pad slot and belongs to nobody.

    Lowest free ids first, and a fresh pool hands them out in order: neighbouring tokens then
    lie beside each other in memory.
    """

    def __init__(self, num_slots: int) -> None:
        if num_slots < 2:
            raise SizeError.of(
                f"num_slots={num_slots}: the pool needs the pad slot and at least one more; "
                "raise num_slots",
                expected="num_slots of 2 or more",
                found=num_slots,
            )
        self.num_slots = num_slots
        self._free = list(range(num_slots - 1, PAD_SLOT, -1))
        self._owned = bytearray(num_slots)

    @property
    def free(self) -> int:
        """How many slots nobody owns."""
        return len(self._free)

    @property
    def owned(self) -> int:
        """How many slots somebody owns."""
        return self._owned.count(1)

    @property
    def capacity(self) -> int:
        """How many slots can be owned in all: the pad slot is not among them."""
        return self.num_slots - 1

    def allocate(self, count: int) -> list[int]:
        """`count` slots that nobody owned; OutOfSlots leaves everything as it was."""
        if count > len(self._free):
            raise OutOfSlots(
                f"{count} KV slots are needed and {len(self._free)} of {self.capacity} are free; "
                "raise num_slots or lower max_requests"
            )
        if count <= 0:
            return []
        taken = self._free[: -count - 1 : -1]
        del self._free[-count:]
        for slot in taken:
            self._owned[slot] = 1
        return taken

    def release(self, slots: Iterable[int]) -> None:
        """These slots are free again. Releasing what is not owned is our own mistake."""
        for slot in slots:
            assert self._owned[slot], f"slot {slot} is released and nobody owns it"
            self._owned[slot] = 0
            self._free.append(slot)

    def is_owned(self, slot: int) -> bool:
        """Whether somebody owns this slot."""
        return bool(self._owned[slot])
