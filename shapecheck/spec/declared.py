"""Every contract that is alive, so that a trace finds those that are off: nothing else names them.

At level off a contract is only an attribute of its function, and a function may be anywhere.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapecheck.spec.contract import FunctionContract

_alive: weakref.WeakSet[FunctionContract] = weakref.WeakSet()
_watchers: list[Callable[[FunctionContract], None]] = []


def declare(contract: FunctionContract) -> None:
    """Add a contract, and show it to whoever watches."""
    _alive.add(contract)
    for watcher in _watchers:
        watcher(contract)


@contextmanager
def watching(seen: Callable[[FunctionContract], None]) -> Generator[None]:
    """Call `seen` with every contract: those that exist, and those declared inside the block."""
    for contract in list(_alive):
        seen(contract)
    _watchers.append(seen)
    try:
        yield
    finally:
        _watchers.remove(seen)
