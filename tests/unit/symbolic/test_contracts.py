"""Contracts under trace: held to names, whatever the numbers and whatever the level."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from shapecheck import Dims, carrier, contract, dtype, enable, graph_buffers, ids, phase
from shapecheck.symbolic import Report, trace

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
Hidden = Annotated[Float[Tensor, "bs draft_hidden"], dtype("draft")]


@carrier
@dataclass
class State:
    hidden_states: Hidden
    topk_index: Annotated[Int64[Tensor, "bs topk"], ids("draft")]


@carrier
@dataclass
class Phased:
    hidden_states: (
        Annotated[Float[Tensor, "bs target_hidden"], phase("extend")]
        | Annotated[Float[Tensor, "bs draft_hidden"], phase("decode")]
    )


@graph_buffers(live=State)
@dataclass
class Buffers:
    hidden_states: Annotated[Float[Tensor, "padded_bs draft_hidden"], dtype("draft")]
    topk_index: Annotated[Int64[Tensor, "padded_bs topk"], ids("draft")]


class Base:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims


class Worker(Base):
    @contract(phase="decode")
    def step(self, state: State) -> Float[Tensor, "bs*topk draft_hidden"]:
        assert super().__init__ is not None  # a closure over __class__
        return state.hidden_states.repeat_interleave(self.dims["topk"], 0)

    @contract(phase="idle")
    def idle(self, state: State, width: str) -> State:
        zeros = torch.zeros(len(state.topk_index), self.dims[width], dtype=torch.float16)
        return State(zeros, state.topk_index)

    @contract(phase="decode")
    def either(self, state: State | Phased, rows: list[Hidden], pair: tuple[Hidden, int]) -> None:
        return None

    @contract(phase="decode")
    def phased(self, state: Phased, more: Hidden | None = None) -> None:
        return None

    @contract
    def stream(self, states: list[State]) -> Iterator[State]:
        yield from states

    @contract
    async def later(self, state: State) -> Hidden:
        return state.hidden_states[:, : self.dims["target_hidden"]]

    @contract
    async def stream_later(self, states: list[State]) -> AsyncIterator[State]:
        for state in states:
            yield state

    @classmethod
    @contract
    def build(cls, dims: Dims, state: State) -> Float[Tensor, "bs recurrent_hidden"]:
        return state.hidden_states


@contract
def joined(left: Hidden, right: Float[Tensor, "bs draft_hidden"]) -> Hidden:
    return left


@contract
def rows(
    left: Float[Tensor, "bs*topk draft_hidden"], right: Float[Tensor, "bs topk draft_hidden"]
) -> None:
    return None


def _swapped(t) -> State:
    return State(t.tensor("bs target_hidden", "draft"), t.make(State).topk_index)


def _codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_a_swap_of_equal_numbers_is_one_finding_in_the_words_of_run_time() -> None:
    dims = Dims.from_configs(
        CONFIGS / "llama-3-8b", CONFIGS / "eagle-llama-8b", algorithm="eagle", num_steps=3
    )
    with trace(dims) as t:
        Worker(t.dims).step(_swapped(t))
    report = t.report()
    (finding,) = report.findings
    assert finding.code == "SHP201"
    number = dims["target_hidden"]
    assert finding.message == (
        "Worker.step (phase decode), argument state.hidden_states: "
        f"dim 1 draft_hidden is {number}, got {number} (target_hidden, extend_hidden)"
    )
    said = [note.message for note in finding.notes]
    assert f"dim 1: draft_hidden is {number}  ({dims.origin('draft_hidden')})" in said
    assert f"       {number} is target_hidden ({dims.origin('target_hidden')})" in said
    assert any("carries the draft's output" in note for note in said)
    assert any("both are" in note for note in said)
    (made,) = [note for note in finding.notes if note.message == "made here"]
    assert made.label == "target_hidden"
    assert made.span is not None
    assert made.span.path.endswith("test_contracts.py")
    assert finding.crossing is not None
    assert finding.crossing.field == "argument state.hidden_states"
    assert finding.primary is not None
    assert finding.dims is not None
    assert (finding.dims.expected, finding.dims.found) == ("draft_hidden", "target_hidden")


def test_what_a_contract_promises_is_no_finding() -> None:
    with trace() as t:
        worker, state = Worker(t.dims), t.make(State)
        worker.step(state)
        worker.idle(state, "draft_hidden")
        worker.either(state, [state.hidden_states], (state.hidden_states, 1))
        worker.build(t.dims, state)
        list(worker.stream([state, state]))
        joined(state.hidden_states, state.hidden_states)
        rows(t.tensor("bs*topk draft_hidden"), t.tensor("bs topk draft_hidden"))
        state.check(t.dims)
        t.make(Buffers).fill(state)
    report = t.report()
    assert report.findings == ()
    assert report.consequences == ()
    assert report.crossings > 20


@pytest.mark.parametrize("level", ["warn", "strict", "full"])
def test_contracts_that_are_on_are_judged_in_the_same_way(level: str) -> None:
    with enable(Worker, level=level), trace() as t:
        worker = Worker(t.dims)
        worker.step(t.make(State))
        worker.step(_swapped(t))
    assert _codes(t.report()) == ["SHP201"]


def test_plans_made_before_a_trace_do_not_run_in_it() -> None:
    @contract
    def same(left: Float[Tensor, "bs topk"], right: Float[Tensor, "bs topk"]) -> None:
        return None

    holder = type("Holder", (), {"same": staticmethod(same)})
    with enable(holder):
        holder.same(torch.zeros(2, 3), torch.zeros(2, 3))
        with trace() as t:
            holder.same(t.tensor("bs topk"), t.tensor("topk bs"))
        holder.same(torch.zeros(2, 3), torch.zeros(2, 3))
    assert _codes(t.report()) == ["SHP201"]


def test_every_function_is_as_it_was_after_the_trace() -> None:
    before, names = Worker.step.__code__, set(globals())
    with trace() as t:
        assert Worker.step.__code__ is not before
        with trace():
            pass
        Worker(t.dims).step(t.make(State))
    assert Worker.step.__code__ is before
    assert set(globals()) == names


def test_later_crossings_and_operations_of_the_same_names_are_consequences() -> None:
    with trace() as t:
        worker = Worker(t.dims)
        wrong = worker.idle(t.make(State), "target_hidden")
        worker.step(wrong)
        wrong.hidden_states + t.make(State).hidden_states
    report = t.report()
    assert [finding.cell for finding in report.findings] == ["Worker.idle(return)"]
    assert len(report.consequences) == 2


def test_two_mistakes_at_one_boundary_are_two_findings() -> None:
    with trace() as t:
        state = _swapped(t)
        state.topk_index = t.tensor("bs num_draft_tokens", torch.int64)
        Worker(t.dims).step(state)
    assert _codes(t.report()) == ["SHP201", "SHP201"]


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("SHP304", lambda t, s: setattr(s, "hidden_states", s.hidden_states.to(torch.bfloat16))),
        ("SHP207", lambda t, s: setattr(s, "topk_index", s.topk_index.int())),
        ("SHP201", lambda t, s: setattr(s, "topk_index", s.topk_index.view(-1))),
        ("SHP201", lambda t, s: setattr(s, "topk_index", s.topk_index.t())),
        ("SHP205", lambda t, s: setattr(s, "topk_index", None)),
        ("SHP205", lambda t, s: delattr(s, "topk_index")),
        ("SHP305", lambda t, s: t.ids(s.topk_index, "target_vocab")),
        ("SHP305", lambda t, s: t.offset(s.topk_index, "draft_vocab", "target_vocab")),
    ],
)
def test_rank_dtype_class_and_ids(code: str, change) -> None:
    with trace() as t:
        state = t.make(State)
        change(t, state)
        Worker(t.dims).step(state)
    assert _codes(t.report()) == [code]


def test_an_empty_placeholder_of_another_dtype() -> None:
    with trace(hints={"bs": 0}) as t:
        state = t.make(State)
        state.hidden_states = state.hidden_states.float()
        Worker(t.dims).step(state)
    assert _codes(t.report()) == ["SHP203"]


def test_ids_of_a_contract_are_known_from_there_on() -> None:
    with trace() as t:
        made = torch.zeros(t.size("bs"), t.size("topk"), dtype=torch.int64)
        Worker(t.dims).step(State(t.make(State).hidden_states, made))
        torch.nn.functional.embedding(made, t.tensor("target_vocab target_hidden"))
    assert _codes(t.report()) == ["SHP305"]


def test_equal_vocabularies_may_be_allowed() -> None:
    with trace() as t:
        t.allow("draft_vocab == target_vocab", reason="one tokenizer")
        state = t.make(State)
        t.ids(state.topk_index, "target_vocab")
        Worker(t.dims).step(state)
    assert _codes(t.report()) == []


def test_a_field_filled_for_another_phase() -> None:
    with trace() as t:
        Worker(t.dims).phased(Phased(t.tensor("bs target_hidden")))
    (finding,) = t.report().findings
    assert finding.code == "SHP202"
    assert "phase extend" in finding.message


def test_lists_unions_tuples_and_options_are_opened() -> None:
    with trace() as t:
        worker, good = Worker(t.dims), t.make(State)
        wide = t.tensor("bs target_hidden", "draft")
        hidden = good.hidden_states
        worker.either(good, [hidden, wide], (hidden, 1))
        worker.either(good, [hidden], (t.tensor("bs target_hidden", "draft"), 1))
        worker.either(_swapped(t), [hidden], (hidden, 1))
        worker.phased(Phased(hidden), t.tensor("bs target_hidden", "draft"))
        worker.either(hidden, [hidden], (hidden, 1))
    fields = [one.crossing.field for one in t.report().findings if one.crossing is not None]
    assert fields == [
        "argument rows[1]",
        "argument pair[0]",
        "argument state.hidden_states",
        "argument more",
        "argument state",
    ]


def test_generators_and_coroutines() -> None:
    async def every(worker: Worker, states: list[State]) -> list[State]:
        return [state async for state in worker.stream_later(states)]

    with trace() as t:
        worker = Worker(t.dims)
        assert len(list(worker.stream([t.make(State), _swapped(t)]))) == 2
        assert len(asyncio.run(every(worker, [t.make(State), _swapped(t)]))) == 2
        asyncio.run(worker.later(t.make(State)))
    report = t.report()
    fields = [one.crossing.field for one in report.findings if one.crossing is not None]
    assert fields == ["argument states[1].hidden_states", "return"]
    # Made at the same line as the first, so it says nothing new.
    (again,) = report.consequences
    assert again.message.startswith("Worker.stream_later, argument states[1]")


def test_without_dims_the_names_of_models_are_those_of_the_trace() -> None:
    with trace() as t:
        joined(t.tensor("bs target_hidden", "draft"), t.tensor("bs target_hidden"))
    assert _codes(t.report()) == ["SHP201"]
    with trace() as t:
        # Without Dims an algorithm's name binds to what the call has.
        wide = t.tensor("bs*num_draft_tokens draft_hidden")
        rows(wide, t.tensor("bs num_draft_tokens draft_hidden"))
    assert _codes(t.report()) == []


def test_a_formula_is_compared_as_a_polynomial() -> None:
    with trace() as t:
        right = t.tensor("bs topk draft_hidden")
        rows(t.tensor("topk*bs draft_hidden"), right)
        rows(t.tensor("bs*num_draft_tokens draft_hidden"), right)
    (finding,) = t.report().findings
    assert finding.dims is not None
    assert finding.dims.expected == "bs*topk"
    assert "bs*num_draft_tokens" in finding.message


def test_a_contract_declared_inside_the_trace_is_held() -> None:
    with trace() as t:

        @contract
        def late(left: Float[Tensor, "bs topk"], right: Float[Tensor, "bs topk"]) -> None:
            return None

        late(t.tensor("bs topk"), t.tensor("topk bs"))
    assert _codes(t.report()) == ["SHP201"]


def test_a_buffer_of_the_other_width_and_one_without_partner() -> None:
    with trace() as t:
        state, buffers = t.make(State), t.make(Buffers)
        buffers.hidden_states = t.tensor("padded_bs target_hidden", "draft")
        buffers.fill(state)
    (finding,) = t.report().findings
    assert finding.code == "SHP401"
    assert "target_hidden=128 in the buffer" in finding.message
    assert "draft_hidden=128 in the live carrier" in finding.message
    with trace() as t:
        state, buffers = t.make(State), t.make(Buffers)
        buffers.topk_index = None  # type: ignore[assignment]
        t.run(buffers.fill, state)
    assert _codes(t.report()) == ["SHP401"]


DISAGREEING = {
    "another name of rows": ("num_slots", "num_slots=997"),
    "one row more": ("padded_bs+1", "padded_bs + 1=12"),
    "a row for each branch": ("padded_bs*topk", "padded_bs*topk=55"),
}


@pytest.mark.parametrize("name", DISAGREEING)
def test_buffers_that_disagree_on_their_rows_are_found(name: str) -> None:
    rows, said = DISAGREEING[name]
    with trace() as t:
        state, buffers = t.make(State), t.make(Buffers)
        buffers.topk_index = t.tensor(f"{rows} topk", torch.int64, ids="draft")
        buffers.fill(state)
    (finding,) = t.report().findings
    assert finding.code == "SHP401"
    assert f"padded_bs is {said} here, and padded_bs=11 in hidden_states" in finding.message
    assert finding.notes[1].message == "allocate every buffer with the rows of one padded_bs"


def test_buffers_of_one_bucket_agree() -> None:
    with trace() as t:
        t.make(Buffers, padded_bs="bs*topk").fill(t.make(State))
        t.make(Buffers, padded_bs=64).fill(t.make(State))
    assert _codes(t.report()) == []


def test_unequal_numbers_are_found_as_well() -> None:
    with trace(setting="draft wider") as t:
        Worker(t.dims).step(_swapped(t))
    (finding,) = t.report().findings
    assert "dim 1 draft_hidden is 256, got 128 (target_hidden)" in finding.message


def test_a_size_that_depends_on_data_is_not_judged() -> None:
    with trace() as t:
        state = t.make(State)
        kept = torch.ones(t.size("bs"), dtype=torch.bool).nonzero()[:, 0]
        Worker(t.dims).step(State(state.hidden_states[kept], state.topk_index[kept]))
    assert _codes(t.report()) == []
