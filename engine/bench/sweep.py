"""Sweep: one pair under many batch sizes and verify widths, each held against its roofline."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from engine.bench.card import Card
from engine.bench.measure import Measured, measure, turns
from engine.bench.roofline import Shape, Work, iteration_forwards
from engine.config import EngineConfig
from engine.llm import LLM
from engine.models.config import ModelConfig
from engine.models.pair import ModelPair
from engine.models.random_pair import random_pair
from engine.observe.spans import Spans
from engine.proposers.synthetic import synthetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is swept; `settings` are further fields of EngineConfig, device and dtype among them.

    N = 1 is plain decoding of the target; every other N is a chain of N-1 drafted tokens.
    """

    target: ModelConfig
    draft: ModelConfig
    acceptance: float
    context: int
    iterations: int
    requests: Sequence[int]
    num_draft_tokens: Sequence[int]
    settings: dict[str, object]

    def config(self, requests: int, width: int) -> EngineConfig:
        """The engine's config for one point: exactly as much memory as its iterations can use."""
        # The room behind the prompt is part of what a captured forward may have to read.
        context = self.context + (turns(self.iterations) + 1) * width + 2
        plain = width == 1
        config = EngineConfig.of(
            target=self.target.source,
            draft=None if plain else self.draft.source,
            algorithm="none" if plain else "standalone",
            num_steps=max(width - 1, 1),
            num_draft_tokens=width,
            max_requests=requests,
            max_context=context,
            prefix_cache=False,
            # All prompts in one turn: those read first would run ahead of the others.
            prefill_chunk=requests * self.context,
            **self.settings,
        )
        slots = requests * config.columns(self.target)
        return config.model_copy(update={"num_slots": slots})

    def pair(self) -> ModelPair:
        """Both models, with positions for the longest point of the sweep."""
        widest = max(self.num_draft_tokens)
        return random_pair(self.target, self.draft, self.config(max(self.requests), widest))

    def prompts(self, requests: int) -> list[list[int]]:
        """Seeded random ids, another prompt for each request."""
        generator = torch.Generator().manual_seed(requests)
        size = (requests, self.context)
        return torch.randint(self.target.vocab, size, generator=generator).tolist()

    def accept_length(self, width: int) -> float:
        """Tokens of an iteration on the average of all coins, the bonus included."""
        return sum(self.acceptance**depth for depth in range(width))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured point and the least work of its forwards, the target's first.

    `accept_length` is what the coins give on average; few iterations draw more or less.
    """

    num_draft_tokens: int
    accept_length: float
    measured: Measured
    forwards: tuple[Work, ...]

    @property
    def iteration(self) -> Work:
        """All forwards together."""
        first, *others = self.forwards
        return sum(others, start=first)

    def forwards_limit_ms(self, card: Card) -> float:
        """Each forward at its own limit: none begins before the last one has ended."""
        return sum(max(work.limits_ms(card)) for work in self.forwards)

    def limit_ms(self, card: Card) -> float:
        """Reading and computing overlap at best: the longer of the two."""
        return max(self.iteration.limits_ms(card))

    def ratio(self, card: Card) -> float:
        """Measured over limit."""
        return self.measured.iteration_ms / self.limit_ms(card)

    @property
    def tokens_per_second(self) -> float:
        """At the average accept length: what the luck of the timed coins cannot change."""
        return self.accept_length * self.measured.requests / self.measured.mean_ms * 1e3

    def verify_bandwidth(self) -> float | None:
        """Bytes per second at which the target's forward alone is done; None without a device."""
        device = self.measured.device or {}
        names = ("verify replay", "verify forward")
        spans = [device[name] for name in names if name in device]
        return self.forwards[0].bytes / spans[0].ms * 1e3 if spans else None


def engine_at(plan: Plan, pair: ModelPair, requests: int, width: int) -> LLM:
    """The engine of one point on these weights."""
    config = plan.config(requests, width)
    if width == 1:
        return LLM.of(config, replace(pair, draft=None))
    return LLM.of(config, pair, proposer=synthetic(plan.acceptance))


def sweep(
    plan: Plan,
    pair: ModelPair,
    *,
    spans: Spans | None = None,
    profile: bool = True,
) -> Iterator[Point]:
    """Every point, one engine after another; `spans` are those of the last one."""
    points = [(requests, width) for requests in plan.requests for width in plan.num_draft_tokens]
    for number, (requests, width) in enumerate(points, start=1):
        llm = engine_at(plan, pair, requests, width)
        last = spans if number == len(points) else None
        found = measure(
            llm,
            plan.prompts(requests),
            iterations=plan.iterations,
            profile=profile,
            spans=last,
        )
        del llm
        _give_memory_back()
        yield _point(plan, width, found)


def _point(plan: Plan, width: int, found: Measured) -> Point:
    itemsize = plan.config(found.requests, width).torch_dtype.itemsize
    shape = Shape(
        requests=found.requests, num_draft_tokens=width, context=found.context, itemsize=itemsize
    )
    return Point(
        num_draft_tokens=width,
        accept_length=plan.accept_length(width),
        measured=found,
        forwards=iteration_forwards(plan.target, plan.draft if width > 1 else None, shape),
    )


def _give_memory_back() -> None:
    """The pools and graphs of an engine that is gone: the next one may need their memory."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
