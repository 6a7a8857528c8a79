"""DeviceClock: how long the device is at each phase, by events in its queue."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpan:
    """Milliseconds on the device since the clock was built."""

    name: str
    start: float
    end: float


@dataclass(slots=True)
class DeviceClock:
    """A watcher for CUDA; `origin` is its zero on the host, in seconds of perf_counter.

    The span of a phase is from the end of the work queued before it to the end of its own: it
    includes the time that the device waited for the host inside the phase.
    """

    origin: float = field(init=False)
    _zero: torch.cuda.Event = field(init=False)
    _open: list[tuple[str, torch.cuda.Event]] = field(default_factory=list)
    _closed: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.cuda.synchronize()
        self._zero = _event()
        torch.cuda.synchronize()
        self.origin = time.perf_counter()

    def begin(self, name: str) -> None:
        self._open.append((name, _event()))

    def end(self, name: str, error: BaseException | None) -> None:
        opened, start = self._open.pop()
        assert opened == name, f"{opened} ends before {name} does"
        self._closed.append((name, start, _event()))

    def spans(self) -> list[DeviceSpan]:
        """Everything watched so far, in order of its end; waits for the device."""
        torch.cuda.synchronize()
        return [
            DeviceSpan(
                name=name,
                start=self._zero.elapsed_time(start),
                end=self._zero.elapsed_time(end),
            )
            for name, start, end in self._closed
        ]


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
