"""LLM: the Python API. Prompts in, texts out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Self, cast

from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import EngineError
from engine.models.pair import ModelPair, load_pair
from engine.observe.contracts import check_seconds, recorded
from engine.observe.metrics import Snapshot
from engine.proposers.base import Proposer
from engine.sampling import SamplingParams
from engine.scheduler.request import FinishReason, Request, TokenLogprob

Prompt = str | Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMetrics:
    """`accept_length` is tokens per iteration, the bonus included; 1 without speculation."""

    iterations: int
    accept_length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one prompt was continued with; `text` leaves out special tokens and the stop string."""

    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    logprobs: tuple[TokenLogprob, ...] | None
    metrics: RequestMetrics

    @classmethod
    def of(cls, request: Request) -> Output:
        """The output of a finished request."""
        assert request.finish is not None, "the request is not finished"
        grown = request.iterations + request.accepted
        return cls(
            prompt_token_ids=request.prompt,
            token_ids=tuple(request.output),
            text=request.text,
            finish_reason=request.finish,
            logprobs=None if request.params.logprobs is None else tuple(request.logprobs),
            metrics=RequestMetrics(
                iterations=request.iterations,
                accept_length=grown / request.iterations if request.iterations else 1.0,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Text that has become certain; `finish_reason` is set on the last piece."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason | None


class LLM:
    """A target, how it is sped up, and its tokenizer.

    `target` is "smollm2" (fetched on first use), a Hugging Face folder or a .gguf file; every
    further setting is a field of EngineConfig.
    """

    def __init__(
        self,
        target: str = "smollm2",
        *,
        draft: str | None = None,
        algorithm: str = "ngram",
        **settings: object,
    ) -> None:
        config = EngineConfig.of(target=target, draft=draft, algorithm=algorithm, **settings)
        self._start(load_pair(config), config)

    @classmethod
    def of(
        cls,
        config: EngineConfig,
        models: ModelPair | None = None,
        *,
        proposer: type[Proposer] | None = None,
    ) -> Self:
        """An LLM of a ready config; models that are loaded already and a proposer of one's own
        take the place of those the config names."""
        self = cls.__new__(cls)
        self._start(load_pair(config) if models is None else models, config, proposer)
        return self

    def _start(
        self, pair: ModelPair, config: EngineConfig, proposer: type[Proposer] | None = None
    ) -> None:
        self.config = config
        self.engine = Engine(pair, config, proposer=proposer)
        self.tokenizer = pair.tokenizer

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[Output]:
        """One output for each prompt, in order; texts or token ids, one SamplingParams for all
        or one for each. EngineError when a request cannot be served."""
        texts = _as_list(prompts)
        chosen = _as_params(params, len(texts))
        requests: list[Request] = []
        try:
            for prompt, one in zip(texts, chosen, strict=True):
                requests.append(self.engine.add(self._ids(prompt), one))
            while any(request.finish is None for request in requests):
                self.engine.turn()
        finally:
            # Nothing is left behind when a prompt is refused or the user interrupts.
            for request in requests:
                self.engine.abort(request)
        return [Output.of(request) for request in requests]

    def stream(self, prompt: Prompt, params: SamplingParams | None = None) -> Iterator[Piece]:
        """Pieces of the text as they become certain; closing the iterator aborts the request."""
        request = self.engine.add(self._ids(prompt), _as_params(params, 1)[0])
        sent = 0
        try:
            while request.finish is None:
                self.engine.turn()
                new = tuple(request.output[sent:])
                sent += len(new)
                if new or request.finish is not None:
                    yield Piece(text=request.read(), token_ids=new, finish_reason=request.finish)
        finally:
            self.engine.abort(request)

    def metrics(self) -> Snapshot:
        """The engine's counts so far."""
        return self.engine.metrics.snapshot()

    def contract_seconds(self, prompt: Prompt = "a") -> float:
        """What the contracts of one decoding iteration cost; 0 at level off.

        The hand-overs of a short request are recorded and their checks timed alone. Call it
        while nothing else is running.
        """
        params = SamplingParams(max_tokens=16, temperature=0.0, ignore_eos=True)
        request = self.engine.add(self._ids(prompt), params)
        try:
            while not request.iterations and request.finish is None:
                self.engine.turn()
            with recorded(self.engine.scheduler.step) as crossings:
                self.engine.turn()
        finally:
            self.engine.abort(request)
        return check_seconds(crossings)

    def reset_metrics(self) -> None:
        """Counting starts anew."""
        self.engine.metrics.reset()

    def _ids(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return self.tokenizer.encode(_whole(prompt))
        if not _is_list(prompt) or not _are_ids(prompt):
            raise EngineError(
                f"a prompt is a text or a list of token ids, not {prompt!r:.80}; give one of these"
            )
        return [int(token) for token in prompt]


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    if isinstance(prompts, (str, bytes, bytearray)) or not isinstance(prompts, Iterable):
        return [prompts]
    found = list(prompts)
    return [found] if found and _are_ids(found) else found


def _is_list(prompt: object) -> bool:
    """Whether it has an order and can be read twice: no set, no mapping, no iterator."""
    return not isinstance(prompt, (bytes, bytearray, Mapping, Set, Iterator))


def _are_ids(prompt: object) -> bool:
    """Whether this is a sequence of whole numbers, numpy's included."""
    try:
        return all(isinstance(one, Integral) for one in cast("Iterable[object]", prompt))
    except TypeError:  # nothing to iterate over, a tensor of no dimension included
        return False


def _whole(text: str) -> str:
    """The text; EngineError when it holds half a character, which no tokenizer can read."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EngineError(
            f"character {error.start} of the prompt is half a character ({text[error.start]!a}); "
            "decode the text as UTF-8 with errors='replace' before"
        ) from None
    return text


def _as_params(
    params: SamplingParams | Sequence[SamplingParams] | None, count: int
) -> list[SamplingParams]:
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * count
    chosen = list(params) if isinstance(params, Iterable) else [params]
    strange = next((one for one in chosen if not isinstance(one, SamplingParams)), None)
    if strange is not None or None in chosen:
        raise EngineError(f"params are SamplingParams, not {strange!r:.80}; write SamplingParams()")
    if len(chosen) != count:
        raise EngineError(
            f"{len(chosen)} SamplingParams for {count} prompts; give one for all or one for each"
        )
    return chosen
