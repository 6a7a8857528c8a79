"""Plans are found by the identity of Dims, shared by equal ones, and bounded."""

import gc
import weakref

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from shapecheck import Dims, ShapeContractError, contract
from shapecheck.runtime import table as tables

from .conftest import pair_dims

GOOD = torch.zeros(3, 2, dtype=torch.int64)


def stepping():
    @contract
    def step(a: Int64[Tensor, "bs topk"], b: Int64[Tensor, "bs"], dims: Dims) -> None: ...

    return step


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every Dims a plan was compiled for."""
    made: list[object] = []
    compile_plan = tables.compile_plan

    def counting(contract, dims, *rest):
        made.append(dims)
        return compile_plan(contract, dims, *rest)

    monkeypatch.setattr(tables, "compile_plan", counting)
    return made


def test_one_plan_per_dims(compiled: list[object], dims: Dims) -> None:
    step = stepping()
    for _ in range(3):
        step(GOOD, GOOD[:, 0], dims)
    assert compiled == [dims]


def test_an_equal_copy_shares_the_plan(compiled: list[object], dims: Dims) -> None:
    step = stepping()
    step(GOOD, GOOD[:, 0], dims)
    step(GOOD, GOOD[:, 0], pair_dims())
    step(GOOD, GOOD[:, 0], dims.model_copy())
    assert len(compiled) == 1


def test_the_table_is_bounded_and_lets_dims_go(compiled: list[object]) -> None:
    step = stepping()
    first = pair_dims(target=1)
    gone = weakref.ref(first)
    step(GOOD, GOOD[:, 0], first)
    del first
    compiled.clear()
    kept = pair_dims(target=2)
    for number in range(3, 3 + 3 * tables.GENERATION):
        step(GOOD, GOOD[:, 0], pair_dims(target=number))
        step(GOOD, GOOD[:, 0], kept)
        compiled[:] = [None] * len(compiled)
    gc.collect()
    assert gone() is None
    held = step.__shapecheck_table__
    assert len(held.plans) + len(held._old) <= 2 * tables.GENERATION


def test_a_plan_in_use_survives_the_turn_of_generations(compiled: list[object]) -> None:
    step, used = stepping(), pair_dims(target=2)
    for number in range(3, 3 + 3 * tables.GENERATION):
        step(GOOD, GOOD[:, 0], used)
        step(GOOD, GOOD[:, 0], pair_dims(target=number))
    assert sum(each == used for each in compiled) == 1


def test_an_id_that_is_used_again_never_finds_anothers_plan() -> None:
    step = stepping()
    for number in range(200):
        topk = 2 + number % 3
        dims = pair_dims().with_sizes(topk=(topk, "test"))
        step(torch.zeros(3, topk, dtype=torch.int64), GOOD[:, 0], dims)
        with pytest.raises(ShapeContractError):
            step(torch.zeros(3, topk + 1, dtype=torch.int64), GOOD[:, 0], dims)
        del dims


def test_something_else_called_dims_is_no_dims() -> None:
    class Worker:
        dims = (3, 2)

        @contract
        def step(self, a: Int64[Tensor, "bs topk"], b: Int64[Tensor, "bs topk"]) -> None: ...

    Worker().step(GOOD, GOOD)
    with pytest.raises(ShapeContractError, match="no Dims was in reach"):
        Worker().step(GOOD, torch.zeros(3, 3, dtype=torch.int64))
