"""Strategies and the state machine: what they draw keeps its contract, and reaches rare states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import torch
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from jaxtyping import Float, Int64
from torch import Tensor

from shapecheck import Dims, carrier, contract, dtype, enable, ids, indexes
from shapecheck.errors import ContractTextError, ShapecheckError, ShapeContractError
from shapecheck.machine import ContractMachine
from shapecheck.strategies import arguments, carriers, pairs, rows
from shapecheck.testing import distinct_dims, make

WIDER = distinct_dims().wider
FEW = settings(
    max_examples=15,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
    stateful_step_count=10,
)

MANY = settings(FEW, max_examples=200)


@carrier
@dataclass(slots=True)
class State:
    hidden_states: Annotated[Float[Tensor, "bs recurrent_hidden"], dtype("draft")]
    tokens: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
    extra: Float[Tensor, "tokens draft_hidden"] | None


class Worker:
    """Its idle placeholder is right; `Wrong` makes it from the target."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract(phase="idle")
    def idle(self, state: State) -> State:
        return State(state.hidden_states[:0], state.tokens[:0], None)

    @contract(phase="step")
    def step(self, state: State, scale: float = 2.0) -> State:
        return State(state.hidden_states * scale, state.tokens.clone(), state.extra)


class Wrong(Worker):
    """Resizes what it was given once there are no rows."""

    @contract(phase="step")
    def step(self, state: State, scale: float = 2.0) -> State:
        width = "target_hidden" if not len(state.tokens) else "draft_hidden"
        size = (len(state.tokens), self.dims[width])
        return State(torch.zeros(size, dtype=torch.float16), state.tokens, state.extra)


@FEW
@given(pairs().flatmap(lambda dims: st.tuples(st.just(dims), carriers(State, dims))))
def test_carriers_keep_their_contract(drawn):
    dims, state = drawn
    assert state.hidden_states.shape == (len(state.tokens), dims["draft_hidden"])
    assert state.tokens.lt(dims["draft_vocab"]).all()


@carrier
@dataclass(slots=True)
class Ragged:
    last: Annotated[Int64[Tensor, "bs"], indexes("tokens")]
    parents: Annotated[Int64[Tensor, "bs"], indexes("tokens", pad=-1)]
    states: Float[Tensor, "tokens target_hidden"]


class RaggedWorker:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract(phase="ragged")
    def ragged(self, batch: Ragged) -> Ragged:
        return Ragged(batch.last.clone(), batch.parents, batch.states)


@MANY
@given(carriers(Ragged, WIDER), arguments(RaggedWorker.ragged, WIDER))
def test_an_index_is_drawn_with_an_axis_that_has_positions(drawn, made):
    for batch in (drawn, made["batch"]):
        batch.check(WIDER)
        assert len(batch.states) or not len(batch.last)


def test_an_empty_axis_is_drawn_where_nothing_indexes_it():
    assert find(carriers(Ragged, WIDER), lambda one: not len(one.states), settings=MANY)


def test_a_machine_steps_over_batches_that_cannot_be():
    seen: list[bool] = []

    class Watching(RaggedWorker):
        @contract(phase="ragged")
        def ragged(self, batch: Ragged) -> Ragged:
            seen.append(len(batch.states) > 0 or not len(batch.last))
            return super().ragged(batch)

    undo = enable(RaggedWorker, level="full")
    try:
        run_state_machine_as_test(machine(Watching), settings=FEW)
    finally:
        undo()
    assert seen
    assert all(seen)


def test_a_machine_finds_a_batch_that_can_be():
    seen: list[int] = []

    class Late(RaggedWorker):
        @contract
        def late(
            self,
            last: Annotated[Int64[Tensor, "bs"], indexes("tokens-6")],
            states: Float[Tensor, "tokens topk"],
            more: Float[Tensor, "bs topk"],
        ) -> None:
            seen.append(len(last))

    run_state_machine_as_test(machine(Late), settings=settings(FEW, max_examples=3))
    assert max(seen)


def test_a_machine_does_not_pass_over_a_step_that_never_runs():
    class Never(RaggedWorker):
        @contract
        def never(
            self,
            last: Annotated[Int64[Tensor, "bs"], indexes("bs-8")],
            more: Float[Tensor, "bs topk"],
        ) -> None: ...

    with pytest.raises(ShapecheckError, match=r"positions along .*mark a pad"):
        run_state_machine_as_test(machine(Never), settings=FEW)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_row_count_is_drawn(count):
    assert find(carriers(State, WIDER), lambda state: len(state.tokens) == count, settings=MANY)
    assert find(rows(), lambda drawn: drawn == count, settings=MANY) == count


def test_optional_fields_are_there_and_not():
    assert find(carriers(State, WIDER), lambda state: state.extra is None, settings=MANY)
    assert find(carriers(State, WIDER), lambda state: state.extra is not None, settings=MANY)


def test_both_pairs_are_drawn():
    assert find(pairs(), lambda dims: dims["draft_hidden"] > dims["target_hidden"], settings=MANY)
    assert find(pairs(), lambda dims: dims["draft_hidden"] < dims["target_hidden"], settings=MANY)


@FEW
@given(arguments(Worker.step, WIDER, given={"scale": 3.0}, tokens=4))
def test_arguments_take_what_is_given(made):
    assert set(made) == {"state", "scale"}
    assert made["scale"] == 3.0
    assert made["state"].extra is None or made["state"].extra.shape[0] == 4


def test_plain_classes_and_functions_are_refused():
    with pytest.raises(ContractTextError, match="not a carrier"):
        carriers(dict, WIDER)
    with pytest.raises(ShapecheckError, match="has no @contract"):
        arguments(test_both_pairs_are_drawn, WIDER)


def machine(cls: type) -> type[ContractMachine]:
    return type(f"{cls.__name__}Machine", (ContractMachine,), {"subject": cls})


def test_a_machine_drives_every_phase():
    seen: set[tuple[str, int]] = set()

    class Watching(Worker):
        @contract(phase="step")
        def step(self, state: State, scale: float = 2.0) -> State:
            seen.add(("step", len(state.tokens)))
            return super().step(state, scale)

    run_state_machine_as_test(machine(Watching), settings=FEW)
    assert {("step", 0), ("step", 1)} <= seen


@carrier
@dataclass(slots=True)
class Rows:
    hidden_states: Float[Tensor, "bs draft_hidden"]
    lens: Int64[Tensor, "bs"]


class Resized:
    """Its idle state has no rows, whatever was there before."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims

    @contract(phase="idle")
    def idle(self) -> Rows:
        return make(Rows, self.dims, bs=0)

    @contract
    def step(self, state: Rows, lens: Int64[Tensor, "bs"]) -> Rows:
        return state


def test_a_machine_hands_on_as_many_rows_as_were_returned():
    seen: set[tuple[int, int]] = set()

    class Watching(Resized):
        @contract
        def step(self, state: Rows, lens: Int64[Tensor, "bs"]) -> Rows:
            seen.add((len(state.lens), len(lens)))
            return super().step(state, lens)

    undo = enable(Resized, level="strict")
    try:
        run_state_machine_as_test(machine(Watching), settings=FEW)
    finally:
        undo()
    assert (0, 0) in seen
    assert all(rows == lens for rows, lens in seen)


def test_a_machine_reaches_the_idle_path():
    undo = enable(Wrong, level="strict")
    try:
        with pytest.raises(ShapeContractError, match="target_hidden"):
            run_state_machine_as_test(machine(Wrong), settings=FEW)
    finally:
        undo()


def test_a_class_without_contracts_is_refused():
    with pytest.raises(ShapecheckError, match="no method with a @contract"):
        run_state_machine_as_test(machine(dict), settings=FEW)
