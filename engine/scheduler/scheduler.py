"""Scheduler: each turn admits, reads some prompt tokens, and grows every running request."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.carriers import VerifyOutput
from engine.errors import EngineError, OutOfSlots
from engine.kv.memory import KVMemory
from engine.observe.metrics import Metrics
from engine.scheduler.live import Running, sampling_of
from engine.scheduler.logprobs import path_logprobs, prompt_logprobs
from engine.scheduler.prompts import Chunk, PromptBatch
from engine.scheduler.request import Request, TokenLogprob
from engine.step import Step
from engine.transfer import HostCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """An iteration that was launched and not yet read; row i is that of requests[i]."""

    requests: Sequence[Request]
    emitted: HostCopy
    verified: VerifyOutput


class Scheduler:
    """Requests wait, are prefilled in chunks, run, and finish; a preempted one waits again.

    A preempted request keeps its tokens and computes their KV anew: its output is the same.
    `narrow` is a step of plain decoding, taken while the proposer has nothing to propose. Where a
    proposer may run ahead, the next iteration is launched before this one is read, so that the
    device does not wait for the host; it lands before any row of the batch changes.
    """

    def __init__(
        self,
        step: Step,
        memory: KVMemory,
        *,
        narrow: Step | None,
        metrics: Metrics,
        target_vocab: int,
        prefill_chunk: int,
        device: torch.device,
    ) -> None:
        self.step = step
        self.narrow = narrow
        self.memory = memory
        self.metrics = metrics
        self.target_vocab = target_vocab
        self.prefill_chunk = prefill_chunk
        self.device = device
        self.waiting: deque[Request] = deque()
        self.reading: list[Request] = []
        self.running = Running(step.proposer.idle(), target_vocab=target_vocab, device=device)
        self._flight: Flight | None = None
        # Requests that grew outside a turn: the next one reports them.
        self._late: list[Request] = []

    @property
    def unfinished(self) -> list[Request]:
        """Every request that is not done, in no order that means anything."""
        return [*self.waiting, *self.reading, *self.running.requests]

    def add(self, request: Request) -> None:
        """The request waits for its turn; EngineError when it could never run."""
        longest = self._longest(request)
        if longest > self.memory.allocator.capacity:
            raise EngineError(
                f"a request of {len(request.prompt)} prompt tokens and max_tokens="
                f"{request.params.max_tokens} needs {longest} KV slots, the pool has "
                f"{self.memory.allocator.capacity}; raise num_slots or lower max_tokens"
            )
        self.waiting.append(request)

    @torch.inference_mode()
    def abort(self, request: Request) -> None:
        """The request ends now, wherever it is; EngineError for one of another engine.

        Its lease is of that engine's rows and slots: released here, it would free our own.
        """
        held = request.finish is None or request.lease is not None
        if held and not any(request is one for one in self.unfinished):
            raise EngineError("the request belongs to another engine; abort it there")
        if request.finish is None:
            request.abort()
        if request in self.waiting:
            self.waiting.remove(request)
        if request in self.reading:
            self.reading.remove(request)
        if request.lease is None:
            return
        try:
            self._late += self._settle()
            self._leave([request])
        except BaseException:
            self._start_over()
            raise

    @torch.inference_mode()
    def turn(self) -> list[Request]:
        """One turn; returns the requests that grew, finished ones included.

        After a turn that fails or is interrupted every request waits again, holding nothing.
        """
        try:
            with self.metrics.turn():
                grown, self._late = self._late, []
                if self.waiting or self.reading:
                    grown += self._settle()
                self._admit()
                if self.reading:
                    grown += self._read_prompts()
                if self.running.requests:
                    grown += self._iterate()
        except BaseException:
            self._start_over()
            raise
        return grown

    @torch.inference_mode()
    def idle_turn(self) -> None:
        """An iteration of no requests: every forward runs with no rows, so that ranks match."""
        empty = Running(
            self.step.proposer.idle(), target_vocab=self.target_vocab, device=self.device
        )
        self.step.iterate(empty.live())

    def _longest(self, request: Request) -> int:
        """The most columns that the request can ever need."""
        return request.limit + self.step.proposer.window

    def _admit(self) -> None:
        while self.waiting:
            request = self.waiting[0]
            columns = len(request.tokens) + self.step.proposer.window
            lease = self.memory.admit(
                request.tokens, columns=columns, longest=self._longest(request)
            )
            if lease is None:
                return
            self.waiting.popleft()
            self.reading.append(request)
            request.lease = lease
            request.computed = lease.match.length
            self.step.proposer.observe(lease.row, request.tokens)

    def _read_prompts(self) -> list[Request]:
        batch = PromptBatch(
            chunks=self._chunks(), shift=self.step.proposer.shift, device=self.device
        )
        for chunk in batch.chunks:
            chunk.request.computed = chunk.end
        ending = batch.ending
        sampling = sampling_of(ending, self.target_vocab, self.device)
        output, state = self.step.read(batch, sampling)
        with self.metrics.time("read back"):
            first = state.bonus_tokens.tolist()
        self.metrics.count_prompt(sum(chunk.end - chunk.start for chunk in batch.chunks))
        logprobs = prompt_logprobs(ending, output.logits, state.bonus_tokens)
        self.running.join(ending, state)
        self.reading = [one for one in self.reading if one.computed < len(one.tokens)]
        self._leave(self._take(ending, [[token] for token in first], logprobs))
        return ending

    def _chunks(self) -> list[Chunk]:
        room, chunks = self.prefill_chunk, []
        for request in self.reading:
            end = min(len(request.tokens), request.computed + room)
            if end > request.computed:
                chunks.append(Chunk(request=request, start=request.computed, end=end))
                room -= end - request.computed
        return chunks

    def _iterate(self) -> list[Request]:
        flight = self._flight or self._launch()
        if flight is None:
            return []
        self._flight = self._launch_ahead(flight)
        done = self._land(flight)
        if done and self._flight is not None:
            ahead, self._flight = self._flight, None
            done += self._land(ahead)
        self._leave(done)
        return list(flight.requests)

    def _launch(self) -> Flight | None:
        self._make_room()
        return self._launched(unread=0) if self.running.requests else None

    def _launch_ahead(self, flight: Flight) -> Flight | None:
        """The iteration after this one, if all that it needs of this one is on the device.

        A request that turns out to have ended takes no token of it.
        """
        ahead = self.step.proposer.runs_ahead and not self.running.penalised
        if not ahead or self.waiting or self.reading:
            return None
        # Each takes one token at least; one that will then be at its limit does not run again.
        if any(len(one.tokens) + 1 >= one.limit for one in flight.requests):
            return None
        try:
            self._grow(flight.requests, unread=1)
        except OutOfSlots:
            return None
        return self._launched(unread=1)

    def _launched(self, *, unread: int) -> Flight:
        """The batch's next iteration, begun; `unread` of its tokens the host does not know yet."""
        live = self.running.live(unread=unread)
        step = self.step
        if self.narrow is not None and not step.proposer.has_guess(live.rows.rows_on_host):
            step = self.narrow
        requests = list(self.running.requests)
        emitted, verified = step.iterate(live)
        return Flight(requests=requests, emitted=emitted, verified=verified)

    def _land(self, flight: Flight) -> list[Request]:
        """The tokens are read and taken; returns the requests that ended with them."""
        with self.metrics.time("read back"):
            table = flight.emitted.tolist()
        logprobs = path_logprobs(flight.requests, flight.verified)
        rows = [row for row, one in enumerate(flight.requests) if one.finish is None]
        if not rows:
            return []
        requests = [flight.requests[row] for row in rows]
        tokens = [table[row][: table[row][-1]] for row in rows]
        self.metrics.count_iteration([len(new) for new in tokens])
        for request, new in zip(requests, tokens, strict=True):
            request.computed += len(new)
            request.iterations += 1
            request.accepted += len(new) - 1
        return self._take(
            requests, tokens, None if logprobs is None else [logprobs[row] for row in rows]
        )

    def _settle(self) -> list[Request]:
        """Nothing is in flight; returns the requests that grew."""
        flight, self._flight = self._flight, None
        if flight is None:
            return []
        grown = [one for one in flight.requests if one.finish is None]
        self._leave(self._land(flight))
        return grown

    def _take(
        self,
        requests: Sequence[Request],
        tokens: Sequence[Sequence[int]],
        logprobs: Sequence[Sequence[TokenLogprob]] | None,
    ) -> list[Request]:
        """Every request takes its tokens; returns those that ended."""
        done = []
        for number, (request, new) in enumerate(zip(requests, tokens, strict=True)):
            taken = request.take(new)
            self.step.proposer.observe(request.row, new[:taken])
            self.metrics.count_output(taken)
            if logprobs is not None:
                request.logprobs += logprobs[number][:taken]
            if request.finish is not None:
                done.append(request)
        return done

    def _leave(self, done: Sequence[Request]) -> None:
        """These requests stop running and hold nothing any more."""
        if not done:
            return
        gone = set(map(id, done))
        self.running.keep([one for one in self.running.requests if id(one) not in gone])
        for request in done:
            self._release(request)

    def _make_room(self) -> None:
        """Every running request has its window; the youngest ones give way until it is so."""
        while True:
            try:
                self._grow(self.running.requests)
                return
            except OutOfSlots:
                self._preempt()

    def _grow(self, requests: Sequence[Request], *, unread: int = 0) -> None:
        """They have their windows behind so many tokens that are still in flight; OutOfSlots if
        there are not enough slots.
        """
        window = unread + self.step.proposer.window
        self.memory.grow([(one.lease, one.computed + window) for one in requests if one.lease])

    def _preempt(self) -> None:
        youngest = max([*self.reading, *self.running.requests], key=lambda one: one.number)
        if youngest in self.reading:
            self.reading.remove(youngest)
            self._release(youngest)
        else:
            self._leave([youngest])
        self.metrics.preemptions += 1
        self.waiting.appendleft(youngest)

    def _start_over(self) -> None:
        """Everybody admitted waits again; of their KV only what the cache had is believed."""
        held = {one.number: one for one in [*self.reading, *self.running.requests]}
        self.reading, self._flight = [], None
        self.running.keep([])
        for _, request in sorted(held.items(), reverse=True):
            if request.lease is not None:
                request.computed = request.lease.match.length
                self._release(request)
            if request.finish is None:
                self.waiting.appendleft(request)

    def _release(self, request: Request) -> None:
        assert request.lease is not None, "only admitted requests hold memory"
        self.step.proposer.forget(request.row)
        # A request that was stopped early has KV of tokens it never took.
        committed = min(request.computed, len(request.tokens))
        self.memory.release(request.lease, request.tokens, committed=committed)
        request.lease = None
        request.computed = 0
