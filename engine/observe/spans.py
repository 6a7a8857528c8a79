"""Spans: what happened when, as a trace that Perfetto and chrome://tracing open.

The format is the JSON object of the Trace Event Format: complete events ("X") with microseconds,
instants ("i") for broken contracts, and names of processes and threads as metadata ("M").
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.errors import EngineError
from engine.observe.device_clock import DeviceSpan
from shapecheck import ShapeContractError

_HOST, _DEVICE = 1, 2
_CONTRACTS = logging.getLogger("shapecheck")


class Spans:
    """A watcher that keeps the spans of the host, and the contracts that were broken in them."""

    def __init__(self) -> None:
        self.origin = time.perf_counter()
        self.events: list[dict[str, object]] = []
        self._open: list[tuple[str, float]] = []
        self._told: BaseException | None = None

    def begin(self, name: str) -> None:
        self._open.append((name, self._now()))

    def end(self, name: str, error: BaseException | None) -> None:
        opened, start = self._open.pop()
        assert opened == name, f"{opened} ends before {name} does"
        # The innermost span names the violation; those around it see the same error pass.
        if isinstance(error, ShapeContractError) and error is not self._told:
            self._told = error
            self.violation(str(error))
        self._complete(_HOST, name, start, self._now() - start)

    def violation(self, text: str) -> None:
        """A contract was broken now."""
        self.events.append(
            {
                "name": "contract violation",
                "ph": "i",
                "s": "p",
                "pid": _HOST,
                "tid": _HOST,
                "ts": self._now(),
                "args": {"message": text},
            }
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Violations that level warn only logs are in the trace as well."""
        handler = _Handler(self)
        _CONTRACTS.addHandler(handler)
        try:
            yield
        finally:
            _CONTRACTS.removeHandler(handler)

    def add_device(self, spans: Sequence[DeviceSpan], *, origin: float) -> None:
        """Spans of a device whose clock was started at `origin`, seconds of perf_counter."""
        shift = (origin - self.origin) * 1e6
        for span in spans:
            length = (span.end - span.start) * 1e3
            self._complete(_DEVICE, span.name, shift + span.start * 1e3, length)

    def write(self, path: Path) -> None:
        """The trace as JSON; EngineError when the file cannot be written."""
        document = {"displayTimeUnit": "ms", "traceEvents": [*_names(), *self.events]}
        try:
            path.write_text(json.dumps(document), encoding="utf-8")
        except OSError as error:
            raise EngineError(
                f"the trace cannot be written to {path} ({error.strerror}); choose another file"
            ) from None

    def _now(self) -> float:
        return (time.perf_counter() - self.origin) * 1e6

    def _complete(self, process: int, name: str, start: float, length: float) -> None:
        self.events.append(
            {"name": name, "ph": "X", "pid": process, "tid": process, "ts": start, "dur": length}
        )


class _Handler(logging.Handler):
    def __init__(self, spans: Spans) -> None:
        super().__init__(level=logging.WARNING)
        self.spans = spans

    def emit(self, record: logging.LogRecord) -> None:
        self.spans.violation(record.getMessage())


def _names() -> list[dict[str, object]]:
    named = []
    for process, name in ((_HOST, "host"), (_DEVICE, "device")):
        for kind in ("process_name", "thread_name"):
            named.append(
                {"name": kind, "ph": "M", "pid": process, "tid": process, "args": {"name": name}}
            )
    return named
