"""A turn that fails or is interrupted: nothing is lost, and what comes after it is right."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from engine import LLM, EngineError, SamplingParams
from engine.kv.table import RequestTable
from engine.scheduler.request import Request

from .conftest import slots_add_up, tiny

PARAMS = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)
# Longer than two blocks of the prefix cache, read in several chunks.
PROMPTS = ["a prompt of more than thirty-two tokens, and then some", "another one", "a third"]

PLACES: dict[str, Callable[[LLM], tuple[object, str]]] = {
    "prefill": lambda llm: (llm.engine.scheduler.step.prefill, "run"),
    "draft extend after prefill": lambda llm: (
        llm.engine.scheduler.step.proposer,
        "after_prefill",
    ),
    "draft decode": lambda llm: (llm.engine.scheduler.step.proposer, "propose"),
    "verify": lambda llm: (llm.engine.scheduler.step.verify, "run"),
    "commit": lambda llm: (llm.engine.scheduler.step.commit, "run"),
    "draft extend after verify": lambda llm: (llm.engine.scheduler.step.proposer, "after_verify"),
    "merge": lambda llm: (llm.engine.scheduler.running, "_set"),
    "take": lambda llm: (Request, "take"),
    "table": lambda llm: (RequestTable, "write_many"),
    "observe": lambda llm: (llm.engine.scheduler.step.proposer, "observe"),
}


def fail_once(patch: pytest.MonkeyPatch, owner: object, name: str, *, at: int, late: bool) -> None:
    """The `at`-th call raises as a user's interrupt would, before or after its work."""
    inner, calls = getattr(owner, name), 0

    def call(*arguments: Any, **options: Any) -> object:
        nonlocal calls
        calls += 1
        if calls == at and not late:
            raise KeyboardInterrupt
        result = inner(*arguments, **options)
        if calls == at:
            raise KeyboardInterrupt
        return result

    patch.setattr(owner, name, call)


@pytest.fixture(scope="module")
def wanted() -> list[tuple[int, ...]]:
    return [output.token_ids for output in tiny("none").generate(PROMPTS, PARAMS)]


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_leaves_nothing_behind(
    place: str, late: bool, wanted: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in (1, 2, 3):
        llm = tiny("eagle3", num_steps=2, prefill_chunk=20, max_requests=2)
        with monkeypatch.context() as patch:
            fail_once(patch, *PLACES[place](llm), at=at, late=late)
            with pytest.raises(KeyboardInterrupt):
                llm.generate(PROMPTS, PARAMS)
        scheduler, memory = llm.engine.scheduler, llm.engine.memory
        assert scheduler.unfinished == []
        assert memory.allocator.owned == memory.cached
        assert memory.table.free == 2
        # The cache must not believe KV that was never written.
        assert [output.token_ids for output in llm.generate(PROMPTS, PARAMS)] == wanted


@pytest.mark.parametrize("place", ["prefill", "commit", "draft extend after verify", "take"])
def test_a_stream_survives_the_failure_of_a_turn(
    place: str, wanted: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = tiny("eagle3", num_steps=2, prefill_chunk=20)
    requests = [llm.engine.add(llm.tokenizer.encode(prompt), PARAMS) for prompt in PROMPTS]
    with monkeypatch.context() as patch:
        fail_once(patch, *PLACES[place](llm), at=2, late=True)
        with pytest.raises(KeyboardInterrupt):
            llm.engine.run()
    assert slots_add_up(llm)
    llm.engine.run()
    assert [tuple(request.output) for request in requests] == wanted
    assert slots_add_up(llm)


def test_a_finished_request_can_be_aborted_again() -> None:
    llm = tiny("ngram")
    request = llm.engine.add([1, 2, 3], PARAMS)
    llm.engine.run()
    llm.engine.abort(request)
    assert request.finish == "length"
    assert slots_add_up(llm)


def test_an_engine_made_in_inference_mode_aborts_outside_it() -> None:
    """Its table may then be written in that mode alone."""
    with torch.inference_mode():
        llm = tiny("standalone", max_context=64)
    stream = llm.stream("hello", PARAMS)
    next(stream)
    stream.close()
    assert slots_add_up(llm)
    assert llm.engine.table.free == llm.config.max_requests


@pytest.mark.parametrize("turns", [0, 2], ids=["waiting", "running"])
def test_a_request_of_another_engine_is_not_touched(turns: int) -> None:
    ours, theirs = tiny("ngram"), tiny("ngram")
    own, foreign = (llm.engine.add([1, 2, 3], PARAMS) for llm in (ours, theirs))
    for _ in range(turns):
        ours.engine.turn()
        theirs.engine.turn()
    with pytest.raises(EngineError, match="belongs to another engine; abort it there"):
        ours.engine.abort(foreign)
    for llm in (ours, theirs):
        llm.engine.run()
        assert slots_add_up(llm)
    assert own.output == foreign.output
    assert own.finish == foreign.finish == "length"


def test_threads_share_an_engine(wanted: list[tuple[int, ...]]) -> None:
    llm = tiny("eagle3", num_steps=2, max_requests=2)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda prompt: llm.generate(prompt, PARAMS)[0], PROMPTS * 2))
    assert [output.token_ids for output in found] == wanted * 2
    assert slots_add_up(llm)
