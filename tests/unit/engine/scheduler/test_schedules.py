"""Random schedules: whoever joins, leaves or is preempted, outputs are those of the single run."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from engine.llm import LLM
from engine.sampling import SamplingParams
from engine.scheduler.request import Request

from ..conftest import SHAPES, drafted_by, slots_add_up, tiny

PROMPTS = ("a", "hello", "hello world", "hello there, and well met", "zzzzzzzzzzzz")
PARAMS = (
    SamplingParams(max_tokens=9, temperature=0.0, ignore_eos=True),
    SamplingParams(max_tokens=1, temperature=0.0),
    SamplingParams(max_tokens=14, temperature=0.0, repetition_penalty=1.3, ignore_eos=True),
    SamplingParams(max_tokens=11, temperature=0.8, top_p=0.9, seed=5, ignore_eos=True),
    # What the tiny target says to some of the prompts: an id, and a text across two tokens.
    SamplingParams(max_tokens=12, temperature=0.0, stop_token_ids=(133, 84), stop=("`\x19",)),
)
ENGINES: dict[str, Callable[..., LLM]] = {
    "none": partial(tiny, "none"),
    "ngram": partial(tiny, "ngram", ngram_min=1),
    "standalone": partial(tiny, "standalone", num_steps=3),
    "standalone tree": partial(tiny, "standalone", **SHAPES["deep narrow tree"]),
    "oracle": partial(drafted_by, "oracle", num_steps=3),
    "oracle tree": partial(drafted_by, "oracle", **SHAPES["tree"]),
    "adversarial": partial(drafted_by, "adversarial", num_steps=3),
    "eagle": partial(tiny, "eagle", num_steps=2),
    "eagle tree": partial(tiny, "eagle", **SHAPES["tree"]),
    "eagle3": partial(tiny, "eagle3", num_steps=2),
    "eagle3 tree, replayed": partial(tiny, "eagle3", graphs=True, **SHAPES["tree"]),
}


@cache
def alone(prompt: str, params: SamplingParams) -> tuple[int, ...]:
    """The tokens of a request that has a plain engine to itself."""
    return tiny("none").generate(prompt, params)[0].token_ids


def crowded(engine: str) -> LLM:
    """An engine with room for three requests at best, and slots for about two."""
    return ENGINES[engine](max_requests=3, num_slots=90, prefill_chunk=5, prefix_block=4)


class Schedule(RuleBasedStateMachine):
    engine = "none"

    @initialize()
    def start(self) -> None:
        self.llm = crowded(self.engine)
        self.asked: list[tuple[Request, str]] = []

    @rule(prompt=st.sampled_from(PROMPTS), params=st.sampled_from(PARAMS))
    def add(self, prompt: str, params: SamplingParams) -> None:
        request = self.llm.engine.add(self.llm.tokenizer.encode(prompt), params)
        self.asked.append((request, prompt))

    @rule(turns=st.integers(1, 4))
    def turn(self, turns: int) -> None:
        for _ in range(turns):
            self.llm.engine.turn()

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        request, _ = data.draw(st.sampled_from(self.asked))
        before = request.finish
        self.llm.engine.scheduler.abort(request)
        assert request.finish == (before or "abort")

    @rule()
    def idle(self) -> None:
        self.llm.engine.scheduler.idle_turn()

    @invariant()
    def no_slot_is_lost(self) -> None:
        if hasattr(self, "llm"):
            assert slots_add_up(self.llm)

    def teardown(self) -> None:
        if not hasattr(self, "llm"):
            return
        self.llm.engine.run()
        for request, prompt in self.asked:
            wanted = alone(prompt, request.params)
            if request.finish == "abort":
                assert tuple(request.output) == wanted[: len(request.output)]
            else:
                assert tuple(request.output) == wanted
        memory = self.llm.engine.memory
        assert memory.allocator.owned == memory.cached
        assert memory.table.free == 3
        assert slots_add_up(self.llm)


@pytest.mark.parametrize("engine", ENGINES)
def test_schedules(engine: str) -> None:
    machine = type("Machine", (Schedule,), {"engine": engine})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=8, stateful_step_count=20, deadline=None, derandomize=True),
    )


@pytest.mark.parametrize("engine", ["ngram", "standalone", "eagle3 tree, replayed"])
def test_load(engine: str) -> None:
    """200 requests of random lengths, some aborted, some stopped: all as if they were alone."""
    chance = random.Random(7)
    llm = ENGINES[engine](max_requests=12, num_slots=500, prefill_chunk=24)
    asked: list[tuple[Request, str]] = []
    for _ in range(200):
        prompt, params = chance.choice(PROMPTS), chance.choice(PARAMS)
        request = llm.engine.add(llm.tokenizer.encode(prompt), params)
        asked.append((request, prompt))
        if chance.random() < 0.4:
            llm.engine.turn()
        if chance.random() < 0.1:
            llm.engine.scheduler.abort(chance.choice(asked)[0])
        assert slots_add_up(llm)
    llm.engine.run()
    assert slots_add_up(llm)
    assert llm.engine.memory.allocator.owned == llm.engine.memory.cached
    reasons = {request.finish for request, _ in asked}
    assert reasons == {"stop", "length", "abort"}
    for request, prompt in asked:
        wanted = alone(prompt, request.params)
        if request.finish == "abort":
            wanted = wanted[: len(request.output)]
        assert tuple(request.output) == wanted
