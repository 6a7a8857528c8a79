"""patches: attributes replaced for a while, and put back in reverse order."""

from __future__ import annotations

from typing import Self


class Patches:
    """Undone at the end of its `with`, whatever happens inside."""

    def __init__(self) -> None:
        self._undo: list[tuple[object, str, object, bool]] = []

    def set(self, owner: object, name: str, value: object) -> None:
        """`owner.name` is `value` from now on; a class keeps its descriptors as they are."""
        own = name in getattr(owner, "__dict__", {})
        before = vars(owner)[name] if own else getattr(owner, name)
        # An attribute found on the class is uncovered again, not copied into the instance.
        self._undo.append((owner, name, before, own or not hasattr(owner, "__dict__")))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Everything is as before the first `set`."""
        while self._undo:
            owner, name, before, own = self._undo.pop()
            if own:
                setattr(owner, name, before)
            else:
                delattr(owner, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()
