"""Running ahead: plain decoding launches its next iteration before it reads the last one."""

from __future__ import annotations

import pytest

from engine.proposers.plain import PlainProposer
from engine.sampling import SamplingParams
from engine.transfer import HostCopy

from ..conftest import slots_add_up, tiny

GREEDY = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order."""
    happened: list[str] = []
    propose, tolist = PlainProposer.propose, HostCopy.tolist

    def proposed(*arguments: object) -> object:
        happened.append("launch")
        return propose(*arguments)  # type: ignore[arg-type]

    def read(self: HostCopy) -> list[list[int]]:
        happened.append("read")
        return tolist(self)

    monkeypatch.setattr(PlainProposer, "propose", proposed)
    monkeypatch.setattr(HostCopy, "tolist", read)
    return happened


def test_one_iteration_is_always_in_flight(order: list[str]) -> None:
    """Five tokens after the prompt's own; at a limit that is known nothing is launched in vain."""
    llm = tiny("none")
    llm.generate("hello", GREEDY)
    assert order == ["launch", *["launch", "read"] * 4, "read"]


def test_penalties_follow_from_tokens_that_were_read(order: list[str]) -> None:
    params = SamplingParams(max_tokens=4, temperature=0.0, repetition_penalty=1.3, ignore_eos=True)
    tiny("none").generate("hello", params)
    assert order == ["launch", "read"] * 3


def test_an_end_nobody_saw_coming(order: list[str]) -> None:
    """The iteration in flight gives its token to the one request that goes on."""
    llm = tiny("none")
    first, second = (llm.generate(prompt, GREEDY)[0].token_ids for prompt in ("hello", "a"))
    stop = SamplingParams(max_tokens=6, temperature=0.0, stop_token_ids=(first[2],))
    order.clear()
    outputs = llm.generate(["hello", "a"], [stop, GREEDY])
    assert outputs[0].token_ids == first[:3]
    assert outputs[0].finish_reason == "stop"
    assert outputs[1].token_ids == second
    assert order.count("launch") == order.count("read") == 5
    assert slots_add_up(llm)


def test_who_grew_when_another_left_is_told_by_the_next_turn() -> None:
    llm = tiny("none")
    gone, stays = (llm.engine.add(llm.tokenizer.encode(one), GREEDY) for one in ("hello", "a"))
    while not stays.iterations:
        llm.engine.turn()
    count = len(stays.tokens)
    llm.engine.abort(gone)
    assert len(stays.tokens) == count + 1, "what was in flight has landed"
    assert slots_add_up(llm)
    assert llm.engine.turn().count(stays) == 2
    llm.engine.run()
    assert tuple(stays.output) == llm.generate("a", GREEDY)[0].token_ids
