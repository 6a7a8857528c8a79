"""Stop strings over streamed text: nothing that may begin a stop string is shown too early."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StopResult:
    """`text` is final and may be shown; `stopped_by` is the stop string found, if any."""

    text: str
    stopped_by: str | None = None


class StopStrings:
    """Finds the stop string that ends first, however the text is cut into pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def feed(self, text: str) -> StopResult:
        """The text released by this piece: up to the stop string, else what cannot begin one.

        Of two stop strings that end together the longer one counts. After a stop nothing more
        may be fed.
        """
        pending = self._held + text
        found = [
            (start + len(stop), start, stop)
            for stop in self._stops
            if (start := pending.find(stop)) >= 0
        ]
        if found:
            _, start, stop = min(found)
            self._held = ""
            return StopResult(text=pending[:start], stopped_by=stop)
        keep = len(pending) - self._longest_beginning(pending)
        self._held = pending[keep:]
        return StopResult(text=pending[:keep])

    def flush(self) -> str:
        """The text held back, once the request has ended for another reason."""
        held, self._held = self._held, ""
        return held

    def _longest_beginning(self, text: str) -> int:
        """The length of the longest end of `text` that begins a stop string."""
        return max(
            (
                size
                for stop in self._stops
                for size in range(1, min(len(stop), len(text) + 1))
                if text.endswith(stop[:size])
            ),
            default=0,
        )
