"""Measure: a batch of requests in its steady state, by the host's clock and by the device's.

The passes follow each other in one batch, so that none disturbs another: wall time with nothing
attached, then phases by events, then kernels by the profiler, then the contracts.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from engine.errors import EngineError
from engine.llm import LLM
from engine.observe.contracts import check_seconds, recorded
from engine.observe.device_clock import DeviceClock
from engine.observe.idle import Busy, device_busy
from engine.observe.metrics import Snapshot
from engine.observe.spans import Spans
from engine.observe.watch import watched
from engine.sampling import SamplingParams
from engine.scheduler.request import Request

WARM, PROFILED = 5, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """The median of one kind of span, and how often it comes in an iteration."""

    ms: float
    per_iteration: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Milliseconds are per iteration; what only a CUDA device can tell is None elsewhere.

    `device` is by phase, forwards included. `busy` is what the profiler saw in PROFILED
    iterations. `context` is the mean committed length in the timed iterations.
    """

    requests: int
    context: float
    iteration_ms: float
    mean_ms: float
    snapshot: Snapshot
    host_ms: dict[str, float]
    device: dict[str, DeviceTime] | None
    busy: Busy | None
    contract_ms: float

    @property
    def tokens_per_second(self) -> float:
        """Output tokens of all requests by wall time."""
        accepted = self.snapshot.accept_length * self.requests
        return accepted / self.mean_ms * 1e3

    @property
    def idle_share(self) -> float | None:
        """1 - busy device time / wall time of iterations without the profiler."""
        if self.busy is None:
            return None
        return 1 - self.busy.busy / PROFILED / self.mean_ms

    @property
    def idle_share_profiled(self) -> float | None:
        """The same within the profiled iterations, which the profiler itself delays."""
        return None if self.busy is None else self.busy.idle_share


def turns(iterations: int) -> int:
    """Iterations that `measure` runs at most, all passes together."""
    return WARM + 2 * iterations + PROFILED + 2


def measure(
    llm: LLM,
    prompts: Sequence[Sequence[int]],
    *,
    iterations: int,
    profile: bool = True,
    spans: Spans | None = None,
) -> Measured:
    """Greedy decoding of all prompts together; EngineError when one ends too early to be measured.

    Without `profile` there is no `busy`: reading a profile takes longer than the rest. Each prompt
    has room for `turns(iterations)` iterations of full acceptance.
    """
    engine = llm.engine
    room = turns(iterations) * engine.dims["num_draft_tokens"]
    params = SamplingParams(max_tokens=room + 2, temperature=0.0, ignore_eos=True)
    requests = [engine.add(prompt, params) for prompt in prompts]
    scheduler = engine.scheduler
    try:
        with engine.on_device():
            while len(scheduler.running.requests) < len(requests):
                engine.turn()
                _refuse_ended(requests)
            _iterate(llm, WARM)
            llm.reset_metrics()
            before = mean(request.computed for request in requests)
            times = _iterate(llm, iterations)
            snapshot = llm.metrics()
            context = (before + mean(request.computed for request in requests)) / 2
            device = _device_times(llm, iterations, spans)
            busy = None
            if profile and scheduler.device.type == "cuda":
                busy = device_busy(lambda: _iterate(llm, PROFILED))
            with recorded(scheduler.step) as crossings:
                engine.turn()
            _refuse_ended(requests)
    finally:
        for request in requests:
            engine.abort(request)
    return Measured(
        requests=len(requests),
        context=context,
        iteration_ms=median(times) * 1e3,
        mean_ms=mean(times) * 1e3,
        snapshot=snapshot,
        host_ms={name: spent / iterations * 1e3 for name, spent in snapshot.seconds.items()},
        device=device,
        busy=busy,
        contract_ms=check_seconds(crossings) * 1e3,
    )


def _refuse_ended(requests: Sequence[Request]) -> None:
    if any(request.finish is not None for request in requests):
        raise EngineError(
            "a request ended while it was measured; raise max_context and num_slots, or lower "
            "the iterations"
        )


def _iterate(llm: LLM, count: int) -> list[float]:
    """Seconds of each turn; every turn ends with its tokens on the host."""
    times: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        llm.engine.turn()
        times.append(time.perf_counter() - start)
    return times


def _device_times(llm: LLM, iterations: int, spans: Spans | None) -> dict[str, DeviceTime] | None:
    """Medians by name; the spans of host and device are kept as well if asked for."""
    scheduler = llm.engine.scheduler
    kept = () if spans is None else (spans,)
    if scheduler.device.type != "cuda":
        if spans is not None:
            with watched(scheduler, spans), spans.listening():
                _iterate(llm, iterations)
        return None
    clock = DeviceClock()
    with watched(scheduler, *kept, clock):
        if spans is None:
            _iterate(llm, iterations)
        else:
            with spans.listening():
                _iterate(llm, iterations)
    found = clock.spans()
    if spans is not None:
        spans.add_device(found, origin=clock.origin)
    lengths: defaultdict[str, list[float]] = defaultdict(list)
    for span in found:
        lengths[span.name].append(span.end - span.start)
    return {
        name: DeviceTime(ms=median(each), per_iteration=len(each) / iterations)
        for name, each in lengths.items()
    }
