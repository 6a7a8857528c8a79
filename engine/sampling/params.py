"""SamplingParams: what one request asks of the sampler, refused early when it makes no sense."""

import math
import sys
from dataclasses import dataclass
from typing import cast

from engine.errors import EngineError

MAX_SEED = 2**63 - 1
# Below this, scaled logits overflow float32 and the law is the argmax anyway.
MIN_TEMPERATURE = 1e-5
# Below this, float32 may keep no token at all.
MIN_TOP_P = 1e-6
# Beyond this, penalised logits leave float32 and the law is no law; sensible ones are below 10.
MAX_PENALTY = 1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """The sampling of one request; a value out of range raises EngineError with the remedy.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1 and `min_p` 0 are off, as are
    `repetition_penalty` 1 and `presence_penalty`, `frequency_penalty` 0. Equal `seed`s give equal
    outputs whatever else is in the batch; None lets the engine choose one. `logprobs` is the
    number of alternatives reported beside each token, None for no logprobs at all.
    """

    max_tokens: int = 128
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None

    def __post_init__(self) -> None:
        self._whole("max_tokens", 1, None, "ask for at least one token")
        self._whole("top_k", 0, MAX_SEED, "use 0 to keep the whole vocabulary")
        self._whole("seed", 0, MAX_SEED, "use a non-negative 63-bit integer, or None")
        self._whole("logprobs", 0, None, "use 0 for the chosen token alone, None for no logprobs")
        self._real("temperature", 0.0, math.inf, "use 0 for greedy decoding")
        if 0.0 < self.temperature < MIN_TEMPERATURE:
            raise _refused("temperature", self.temperature, "use 0 for greedy decoding")
        self._real("top_p", 0.0, 1.0, "use 1 to keep the whole vocabulary")
        if self.top_p < MIN_TOP_P:
            raise _refused("top_p", self.top_p, "use temperature=0 to take the best token always")
        self._real("min_p", 0.0, 1.0, "use 0 to keep the whole vocabulary")
        most, bound = MAX_PENALTY, f"{MAX_PENALTY:g} is the strongest"
        self._real("repetition_penalty", 1 / most, most, f"use 1 for no penalty; {bound}")
        self._real("presence_penalty", -most, most, f"use 0 for no penalty; {bound}")
        self._real("frequency_penalty", -most, most, f"use 0 for no penalty; {bound}")
        self._stops()

    @property
    def is_greedy(self) -> bool:
        """Whether every token is the most probable one."""
        return self.temperature == 0.0

    @property
    def truncates(self) -> bool:
        """Whether top-k, top-p or min-p cuts the law."""
        return self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0

    @property
    def penalises(self) -> bool:
        """Whether tokens seen before change the law."""
        return (
            self.repetition_penalty != 1.0
            or self.presence_penalty != 0.0
            or self.frequency_penalty != 0.0
        )

    def _whole(self, name: str, low: int, high: int | None, remedy: str) -> None:
        value: object = getattr(self, name)
        if value is None and name in ("seed", "logprobs"):
            return
        if not isinstance(value, int) or isinstance(value, bool):
            raise _refused(name, value, f"give an integer: {remedy}")
        if value < low or (high is not None and value > high):
            raise _refused(name, value, remedy)

    def _real(self, name: str, low: float, high: float, remedy: str) -> None:
        value: object = getattr(self, name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise _refused(name, value, f"give a number: {remedy}")
        # An infinite bound is open to every finite float; NaN fails both comparisons.
        if not low <= value <= min(high, sys.float_info.max):
            raise _refused(name, value, remedy)

    def _stops(self) -> None:
        # A lone string is a sequence too: iterating it would stop at each of its characters.
        if not _all_of(self.stop, str):
            raise _refused("stop", self.stop, "give a tuple of strings, for example ('\\n\\n',)")
        if "" in self.stop:
            raise _refused("stop", self.stop, "leave the empty string out: it matches everywhere")
        if not _all_of(self.stop_token_ids, int) or any(i < 0 for i in self.stop_token_ids):
            raise _refused(
                "stop_token_ids", self.stop_token_ids, "give a tuple of token ids, each 0 or more"
            )


def _all_of(value: object, kind: type) -> bool:
    """Whether `value` is a tuple of `kind`, as its annotation promises and a caller may not."""
    return isinstance(value, tuple) and all(
        isinstance(one, kind) and not isinstance(one, bool) for one in cast("tuple[object]", value)
    )


def _refused(name: str, value: object, remedy: str) -> EngineError:
    return EngineError(f"SamplingParams({name}={value!r}) is out of range: {remedy}")
