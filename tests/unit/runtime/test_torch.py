"""Contracts under torch's own machinery: compile, fake tensors, modes, devices, threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated

import pytest
import torch
from jaxtyping import Float32, Int64
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode

from shapecheck import Dims, ShapeContractError, carrier, contract, ids, invariant

from .conftest import pair_dims


@carrier
@dataclass
class State:
    hidden: Float32[Tensor, "bs draft_hidden"]
    lens: Int64[Tensor, "bs"]
    more: Float32[Tensor, "bs topk"] | None = None


def state(bs: int = 3, width: int = 16, **where: object) -> State:
    return State(torch.zeros(bs, width, **where), torch.zeros(bs, dtype=torch.int64, **where))


@pytest.fixture
def dims() -> Dims:
    return pair_dims(target=32, draft=16)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def worker(dims: Dims):
    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @contract(phase="decode")
        def step(self, it: State) -> State:
            return State(it.hidden + 1, it.lens)

    return Worker()


def test_a_warm_contract_traces_whole_inside_compile(dims: Dims) -> None:
    made = worker(dims)
    made.step(state())
    compiled = torch.compile(lambda it: made.step(it).hidden * 2, backend="eager", fullgraph=True)
    for bs in (3, 4, 7):
        assert torch.equal(compiled(state(bs)), torch.full((bs, 16), 2.0))
    assert not counters["graph_break"]


def test_a_cold_contract_inside_compile_runs_unchecked(dims: Dims) -> None:
    made = worker(dims)
    compiled = torch.compile(lambda it: made.step(it).hidden, backend="eager", fullgraph=True)
    assert compiled(state(width=8)).shape == (3, 8)


def test_a_violation_inside_a_whole_graph_surfaces_as_unsupported(dims: Dims) -> None:
    made = worker(dims)
    made.step(state())
    compiled = torch.compile(lambda it: made.step(it).hidden, backend="eager", fullgraph=True)
    with pytest.raises((torch._dynamo.exc.Unsupported, ShapeContractError)):
        compiled(state(width=32))


def test_a_contract_around_a_compiled_function(dims: Dims) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dims = dims
            self.fc = nn.Linear(16, 16)
            self.inner = torch.compile(self.fc, backend="eager")

        @contract(phase="decode")
        def forward(
            self, hidden: Float32[Tensor, "bs draft_hidden"]
        ) -> Float32[Tensor, "bs draft_hidden"]:
            return self.inner(hidden)

    model = Model()
    assert model(torch.zeros(3, 16)).shape == (3, 16)
    with pytest.raises(ShapeContractError, match="32 is target_hidden"):
        model(torch.zeros(3, 32))


def test_compiling_a_module_whose_forward_has_a_contract(dims: Dims) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dims = dims
            self.fc = nn.Linear(16, 16)

        @contract(phase="decode")
        def forward(
            self, hidden: Float32[Tensor, "bs draft_hidden"]
        ) -> Float32[Tensor, "bs draft_hidden"]:
            return self.fc(hidden)

    model = Model()
    model(torch.zeros(3, 16))
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert compiled(torch.zeros(5, 16)).shape == (5, 16)


def test_fake_tensors(dims: Dims) -> None:
    made = worker(dims)
    with FakeTensorMode():
        assert made.step(state()).hidden.shape == (3, 16)
        with pytest.raises(ShapeContractError, match="32 is target_hidden"):
            made.step(state(width=32))


def test_meta_tensors_and_device_contexts(dims: Dims) -> None:
    made = worker(dims)
    with torch.device("meta"):
        made.step(state())
        with pytest.raises(ShapeContractError, match=r"got float32\[3, 32\] on meta"):
            made.step(state(width=32))


def test_inference_mode(dims: Dims) -> None:
    made = worker(dims)
    with torch.inference_mode():
        made.step(state())
        with pytest.raises(ShapeContractError):
            made.step(state(width=32))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_no_synchronisation_on_cuda(dims: Dims) -> None:
    made = worker(dims)
    right, wrong = state(device="cuda"), state(width=32, device="cuda")
    made.step(right)
    torch.cuda.set_sync_debug_mode("error")
    try:
        made.step(right)
        with pytest.raises(ShapeContractError, match=r"got float32\[3, 32\] on cuda:0"):
            made.step(wrong)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_parameters_and_subclasses_are_tensors(dims: Dims) -> None:
    given = State(nn.Parameter(torch.zeros(3, 16)), torch.zeros(3, dtype=torch.int64))
    assert worker(dims).step(given).hidden.sum() == 3 * 16


def test_full_reads_no_data_that_is_not_there(level, dims: Dims) -> None:
    level("full")

    @contract
    def marked(
        index: Annotated[Int64[Tensor, "bs topk"], ids("draft")],
        other: Int64[Tensor, "bs"],
        dims: Dims,
    ) -> tuple[int, ...]:
        return tuple(index.shape)

    with torch.device("meta"):
        assert marked(torch.zeros(3, 2).long(), torch.zeros(3).long(), dims) == (3, 2)
    with FakeTensorMode():
        assert marked(torch.zeros(3, 2).long(), torch.zeros(3).long(), dims) == (3, 2)


def test_full_traces_whole_inside_compile(level, dims: Dims) -> None:
    level("full")

    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @contract
        def step(
            self, index: Annotated[Int64[Tensor, "bs topk"], ids("draft")]
        ) -> Int64[Tensor, "bs topk"]:
            return index + 1

        @invariant(step)
        def grows(index: Tensor, result: Tensor) -> Tensor:
            return result > index

    made, index = Worker(), torch.zeros(3, 2, dtype=torch.int64)
    made.step(index)
    compiled = torch.compile(lambda it: made.step(it), backend="eager", fullgraph=True)
    assert torch.equal(compiled(index), torch.ones(3, 2, dtype=torch.int64))


def test_threads_do_not_mix() -> None:
    """Two engines, many threads, each thread new: every verdict is that of its own Dims."""
    pair = (pair_dims(target=32, draft=16), pair_dims(target=16, draft=32))

    class Worker:
        def __init__(self, dims: Dims) -> None:
            self.dims = dims

        @contract(phase="decode")
        def step(self, it: State) -> State:
            return it

    gate = threading.Barrier(8)

    def run(number: int) -> int:
        made = Worker(pair[number % 2])
        right, wrong = (16, 32) if number % 2 == 0 else (32, 16)
        gate.wait()
        refused = 0
        for _ in range(200):
            made.step(state(width=right))
            try:
                made.step(state(width=wrong))
            except ShapeContractError:
                refused += 1
        return refused

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == [200] * 8
