"""Request: one generation from its prompt to its last token, as the host knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.detokenize import Detokenizer
from engine.kv.memory import Lease
from engine.sampling import SamplingParams
from engine.scheduler.stop import StopStrings
from engine.tokenizer import Tokenizer

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """The log-probability of one emitted token, and the best alternatives with theirs."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """`tokens` is prompt and output; `computed` counts the positions whose KV is written.

    While it runs, the newest token (the bonus) has no KV: computed == len(tokens) - 1.
    """

    number: int
    prompt: tuple[int, ...]
    params: SamplingParams
    seed: int
    end_ids: frozenset[int]
    limit: int
    detokenizer: Detokenizer
    stops: StopStrings
    tokens: list[int] = field(default_factory=list)
    lease: Lease | None = None
    computed: int = 0
    text: str = ""
    unread: str = ""
    finish: FinishReason | None = None
    logprobs: list[TokenLogprob] = field(default_factory=list)
    iterations: int = 0
    accepted: int = 0

    @classmethod
    def of(
        cls,
        number: int,
        prompt: Sequence[int],
        params: SamplingParams,
        *,
        seed: int,
        max_context: int,
        tokenizer: Tokenizer,
    ) -> Request:
        """A new request; it may grow to `max_context` tokens at most."""
        ends = set(params.stop_token_ids)
        if not params.ignore_eos:
            ends |= set(tokenizer.eos_ids)
        return cls(
            number=number,
            prompt=tuple(prompt),
            params=params,
            seed=seed if params.seed is None else params.seed,
            end_ids=frozenset(ends),
            limit=min(len(prompt) + params.max_tokens, max_context),
            detokenizer=Detokenizer(tokenizer.decode, prompt),
            stops=StopStrings(params.stop),
            tokens=list(prompt),
        )

    @property
    def output(self) -> list[int]:
        """The tokens generated so far."""
        return self.tokens[len(self.prompt) :]

    @property
    def row(self) -> int:
        """Its row of the request table, once admitted."""
        assert self.lease is not None, "the request has not been admitted"
        return self.lease.row

    def take(self, tokens: Sequence[int]) -> int:
        """Append emitted tokens until one ends the request; returns how many were taken."""
        for count, token in enumerate(tokens, start=1):
            self.tokens.append(token)
            if token in self.end_ids:
                self._end("stop", self.stops.feed(self.detokenizer.flush()).text)
            else:
                found = self.stops.feed(self.detokenizer.push(token))
                self._show(found.text)
                if found.stopped_by is not None:
                    self.finish = "stop"
                elif len(self.tokens) >= self.limit:
                    self._end("length", self.stops.feed(self.detokenizer.flush()).text)
            if self.finish is not None:
                return count
        return len(tokens)

    def abort(self) -> None:
        """The request ends here."""
        self._end("abort", "")

    def read(self) -> str:
        """The text that has become certain since the last read."""
        piece, self.unread = self.unread, ""
        return piece

    def _end(self, reason: FinishReason, rest: str) -> None:
        self._show(rest)
        self._show(self.stops.flush())
        self.finish = reason

    def _show(self, piece: str) -> None:
        self.text += piece
        self.unread += piece
