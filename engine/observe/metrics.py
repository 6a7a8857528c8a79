"""Metrics: tokens, acceptance by draft position, and where the time went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

_UNWATCHED = nullcontext()


class Watcher(Protocol):
    """Is told where a phase, a turn or a forward begins and ends; `error` is what ended it."""

    def begin(self, name: str) -> None: ...

    def end(self, name: str, error: BaseException | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The counts of an engine since it was built or reset; times are wall-clock seconds.

    `acceptance_by_position[i]` is the share of request-iterations whose draft token i+1 was kept.
    `seconds` are by phase, `busy_seconds` those of whole turns. On a GPU a phase only launches
    its work: the wait for it shows in "read back".
    """

    requests_iterated: int
    prompt_tokens: int
    output_tokens: int
    preemptions: int
    accept_length: float
    acceptance_by_position: tuple[float, ...]
    seconds: dict[str, float]
    busy_seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Output tokens by the time the scheduler was at work."""
        return self.output_tokens / self.busy_seconds if self.busy_seconds else 0.0

    def figures(self) -> str:
        """The counts as one line of text."""
        kept = " ".join(f"{share:.2f}" for share in self.acceptance_by_position)
        times = ", ".join(f"{phase} {spent:.2f} s" for phase, spent in self.seconds.items())
        return (
            f"{self.output_tokens} tokens, {self.tokens_per_second:.1f} tok/s, "
            f"accept length {self.accept_length:.2f}"
            + (f" (by position {kept})" if kept else "")
            + f", {times}"
        )


@contextmanager
def watched_by(watchers: Sequence[Watcher], name: str) -> Iterator[None]:
    """What happens inside is `name` to each of these watchers."""
    for watcher in watchers:
        watcher.begin(name)
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        for watcher in reversed(watchers):
            watcher.end(name, failure)


@dataclass(slots=True)
class Metrics:
    """Counts as the scheduler goes along; `watchers` are told of phases and turns, in order."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    preemptions: int = 0
    busy_seconds: float = 0.0
    lengths: Counter[int] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    watchers: tuple[Watcher, ...] = ()

    def reset(self) -> None:
        """Counting starts anew."""
        self.prompt_tokens = self.output_tokens = self.preemptions = 0
        self.busy_seconds = 0.0
        self.lengths.clear()
        self.seconds.clear()

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        """The time inside counts for this phase."""
        start = time.perf_counter()
        try:
            with watched_by(self.watchers, phase) if self.watchers else _UNWATCHED:
                yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[phase] = self.seconds.get(phase, 0.0) + spent

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The time inside is a turn of the scheduler."""
        start = time.perf_counter()
        try:
            with watched_by(self.watchers, "turn") if self.watchers else _UNWATCHED:
                yield
        finally:
            self.busy_seconds += time.perf_counter() - start

    def count_prompt(self, tokens: int) -> None:
        """So many prompt tokens were computed."""
        self.prompt_tokens += tokens

    def count_output(self, tokens: int) -> None:
        """So many tokens were given out."""
        self.output_tokens += tokens

    def count_iteration(self, lengths: Sequence[int]) -> None:
        """One iteration accepted so many tokens of each request, bonus included."""
        self.lengths.update(lengths)

    def snapshot(self) -> Snapshot:
        """The counts so far."""
        total = self.lengths.total()
        deepest = max(self.lengths, default=1)
        kept = [sum(n for size, n in self.lengths.items() if size > i) for i in range(1, deepest)]
        tokens = sum(size * n for size, n in self.lengths.items())
        return Snapshot(
            requests_iterated=total,
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            preemptions=self.preemptions,
            accept_length=tokens / total if total else 0.0,
            acceptance_by_position=tuple(n / total for n in kept),
            seconds=dict(self.seconds),
            busy_seconds=self.busy_seconds,
        )
