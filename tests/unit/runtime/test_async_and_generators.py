"""Contracts on what does not return at once: coroutines, generators, async generators."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from shapecheck import ContractTextError, Dims, ShapeContractError, carrier, contract

BAD = torch.zeros(3, 9, dtype=torch.int64)
GOOD = torch.zeros(3, 2, dtype=torch.int64)


@carrier
@dataclass(slots=True)
class State:
    index: Int64[Tensor, "bs topk"]
    _: KW_ONLY
    lens: Int64[Tensor, "bs"] | None = None
    name: ClassVar[str] = "state"


class HasDims:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims


def test_async(dims: Dims) -> None:
    class Worker(HasDims):
        @contract
        async def step(self, state: State) -> State:
            await asyncio.sleep(0)
            return State(state.index + 1 if state.lens is None else BAD)

    worker = Worker(dims)
    assert inspect.iscoroutinefunction(Worker.step)
    assert asyncio.run(worker.step(State(GOOD))).index.shape == (3, 2)
    with pytest.raises(ShapeContractError, match=r"argument state\.index"):
        asyncio.run(worker.step(State(BAD)))
    with pytest.raises(ShapeContractError, match=r"return\.index"):
        asyncio.run(worker.step(State(GOOD, lens=GOOD[:, 0])))


def test_async_tasks_do_not_mix(dims: Dims) -> None:
    class Worker(HasDims):
        @contract
        async def step(self, state: State) -> State:
            await asyncio.sleep(0)
            return state

    async def both() -> list[object]:
        worker = Worker(dims)
        calls = [
            worker.step(State(torch.zeros(n, 2 if n % 2 else 9, dtype=torch.int64)))
            for n in range(1, 9)
        ]
        return await asyncio.gather(*calls, return_exceptions=True)

    kinds = [type(result) for result in asyncio.run(both())]
    assert kinds == [State, ShapeContractError] * 4


def test_a_generator_is_checked_item_by_item(dims: Dims) -> None:
    class Worker(HasDims):
        @contract
        def steps(self, state: State, items: list[Tensor]) -> Iterator[Int64[Tensor, "bs topk"]]:
            yield from items

    worker = Worker(dims)
    assert len(list(worker.steps(State(GOOD), [GOOD, GOOD]))) == 2
    stream = worker.steps(State(GOOD), [GOOD, BAD, GOOD])
    assert next(stream) is GOOD
    with pytest.raises(ShapeContractError, match="yield"):
        next(stream)
    with pytest.raises(ShapeContractError, match="bs is 3"):
        list(worker.steps(State(GOOD), [GOOD[:2]]))
    with pytest.raises(ShapeContractError, match="argument state"):
        worker.steps(State(BAD), [])


def test_a_generator_passes_send_throw_and_return(dims: Dims) -> None:
    closed: list[str] = []

    class Worker(HasDims):
        @contract
        def steps(self, state: State) -> Generator[State, int, Int64[Tensor, "bs topk"]]:
            try:
                got = yield state
                assert got == 5
                try:
                    yield state
                except KeyError:
                    yield State(GOOD)
                return BAD
            finally:
                closed.append("closed")

    stream = Worker(dims).steps(State(GOOD))
    next(stream)
    stream.send(5)
    assert stream.throw(KeyError()).index is GOOD
    with pytest.raises(ShapeContractError, match="return"):
        next(stream)
    other = Worker(dims).steps(State(GOOD))
    next(other)
    other.close()
    assert closed == ["closed", "closed"]


def test_an_async_generator_is_checked_item_by_item(dims: Dims) -> None:
    class Worker(HasDims):
        @contract
        async def steps(self, state: State, last: Tensor) -> AsyncIterator[State]:
            yield state
            yield State(last)

    async def collect(last: Tensor) -> int:
        return len([item async for item in Worker(dims).steps(State(GOOD), last)])

    assert asyncio.run(collect(GOOD)) == 2
    with pytest.raises(ShapeContractError, match=r"yield\.index"):
        asyncio.run(collect(BAD))


def test_tensors_sent_into_a_generator_are_refused() -> None:
    with pytest.raises(ContractTextError, match="a tensor sent into a generator"):

        @contract
        def steps(state: State) -> Generator[State, Int64[Tensor, "bs"], None]:
            yield state
