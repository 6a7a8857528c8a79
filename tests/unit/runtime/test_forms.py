"""Every form of function and class that a contract can stand on, or its refusal."""

from __future__ import annotations

import functools
import inspect
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Self

import pytest
import torch
from jaxtyping import Float32, Int32, Int64
from torch import Tensor

from shapecheck import ContractTextError, Dims, ShapeContractError, carrier, contract

if TYPE_CHECKING:
    from somewhere import Unimported  # type: ignore[import-not-found]  # on purpose

BAD = torch.zeros(3, 9, dtype=torch.int64)
GOOD = torch.zeros(3, 2, dtype=torch.int64)


class Phase(StrEnum):
    DECODE = "decode"


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


def test_a_method_keeps_its_signature_and_name(dims: Dims) -> None:
    class Worker(HasDims):
        @contract(phase=Phase.DECODE)
        def step(self, index: Int64[Tensor, "bs topk"], /, n: int = 3, *, m: int = 4) -> State:
            """Doc."""
            return State(index)

    step = Worker.step
    assert (step.__name__, step.__doc__) == ("step", "Doc.")
    assert list(inspect.signature(step).parameters) == ["self", "index", "n", "m"]
    worker = Worker(dims)
    assert worker.step(GOOD, m=1).index is GOOD
    assert worker.step(GOOD, 2).index is GOOD
    with pytest.raises(TypeError, match="unexpected keyword"):
        worker.step(GOOD, q=1)  # type: ignore[call-arg]  # on purpose
    with pytest.raises(ShapeContractError, match=r"\(phase decode\)"):
        worker.step(BAD)


@pytest.mark.parametrize("outside", [True, False])
def test_classmethod_in_both_orders(dims: Dims, outside: bool) -> None:
    def create(cls: type, dims: Dims, bs: int, width: int) -> State:
        return State(torch.zeros(bs, width, dtype=torch.int64), lens=torch.zeros(bs).long())

    class Factory:
        make = contract(classmethod(create)) if outside else classmethod(contract(create))

    assert Factory.make(dims, 0, 2).index.shape == (0, 2)
    with pytest.raises(ShapeContractError, match=r"return\.index"):
        Factory.make(dims, 0, 3)


@pytest.mark.parametrize("outside", [True, False])
def test_staticmethod_in_both_orders(dims: Dims, outside: bool) -> None:
    def join(self: Int64[Tensor, "bs topk"], other: Int64[Tensor, "bs topk"], dims: Dims) -> None:
        return None

    class Tools:
        merge = contract(staticmethod(join)) if outside else staticmethod(contract(join))

    Tools.merge(GOOD, GOOD, dims)
    with pytest.raises(ShapeContractError, match="argument other"):
        Tools.merge(GOOD, BAD, dims)


def test_a_classmethod_reads_the_dims_of_its_class(dims: Dims) -> None:
    class Factory:
        dims: ClassVar[Dims]

        @classmethod
        @contract
        def idle(cls, width: int) -> State:
            return State(torch.zeros(0, width, dtype=torch.int64), lens=torch.zeros(0).long())

    Factory.dims = dims
    Factory.idle(2)
    with pytest.raises(ShapeContractError, match="topk is 2"):
        Factory.idle(3)


def test_an_optional_dims_parameter_falls_back_to_the_worker(dims: Dims) -> None:
    class Worker(HasDims):
        @contract
        def step(self, state: State, dims: Dims | None = None) -> None: ...

    Worker(dims).step(State(GOOD))
    with pytest.raises(ShapeContractError, match="topk is 2"):
        Worker(dims).step(State(BAD))


def test_a_dims_parameter_takes_dims_alone(dims: Dims) -> None:
    @contract
    def step(state: State, lens: Int64[Tensor, "bs"], dims: Dims) -> None: ...

    @contract
    def maybe(state: State, lens: Int64[Tensor, "bs"], dims: Dims | None = None) -> State:
        return state

    for wrong in (None, {"topk": 2}):
        with pytest.raises(ShapeContractError, match="argument dims\n  expected Dims "):
            step(State(GOOD), GOOD[:, 0], wrong)  # type: ignore[arg-type]  # on purpose
    maybe(State(GOOD), GOOD[:, 0])
    with pytest.raises(ShapeContractError, match="argument dims\n  expected Dims      got dict"):
        maybe(State(GOOD), GOOD[:, 0], {})  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("outside", [True, False])
def test_property(dims: Dims, outside: bool) -> None:
    def table(self: object) -> tuple[Int64[Tensor, "bs topk"], Int64[Tensor, "bs"]]:
        return self.value, self.value[:, 0]  # type: ignore[attr-defined]

    table.__annotations__.pop("self")

    class Worker(HasDims):
        value = GOOD
        read = contract(property(table)) if outside else property(contract(table))

    worker = Worker(dims)
    assert worker.read[0] is GOOD
    worker.value = BAD
    with pytest.raises(ShapeContractError, match=r"return\[0\]"):
        _ = worker.read


def test_a_property_setter_is_checked_too(dims: Dims) -> None:
    class Worker(HasDims):
        @property
        def pair(self) -> int:
            return 3

        @pair.setter
        @contract
        def pair(self, value: tuple[Int64[Tensor, "bs topk"], Int64[Tensor, "bs"]]) -> None: ...

    worker = Worker(dims)
    worker.pair = (GOOD, GOOD[:, 0])  # type: ignore[assignment]
    with pytest.raises(ShapeContractError, match="argument value"):
        worker.pair = (BAD, GOOD[:, 0])  # type: ignore[assignment]


def test_inherited_and_overridden_methods(dims: Dims) -> None:
    class Base(HasDims):
        @contract
        def step(self, state: State) -> State:
            return state

    class Inherits(Base):
        pass

    class Overrides(Base):
        @contract
        def step(self, state: State) -> State:
            made = super().step(state)
            return State(made.index[:, :1])

    assert Inherits(dims).step(State(GOOD)).index is GOOD
    with pytest.raises(ShapeContractError, match="argument state"):
        Inherits(dims).step(State(BAD))
    with pytest.raises(ShapeContractError, match=r"Overrides\.step, return"):
        Overrides(dims).step(State(GOOD))


def test_carriers_inherit_fields(dims: Dims) -> None:
    @carrier
    @dataclass(slots=True, kw_only=True)
    class Wider(State):
        extra: Int32[Tensor, "bs"]

    @contract
    def step(it: Wider, dims: Dims) -> None: ...

    @contract
    def base(it: State, dims: Dims) -> None: ...

    step(Wider(index=GOOD, extra=torch.zeros(3, dtype=torch.int32)), dims)
    base(Wider(index=GOOD, extra=torch.zeros(3, dtype=torch.int32)), dims)
    with pytest.raises(ShapeContractError, match=r"it\.extra"):
        step(Wider(index=GOOD, extra=torch.zeros(4, dtype=torch.int32)), dims)
    with pytest.raises(ShapeContractError, match=r"it\.index"):
        step(Wider(index=BAD, extra=torch.zeros(3, dtype=torch.int32)), dims)


def test_an_undecorated_subclass_of_a_carrier_is_refused() -> None:
    @dataclass
    class Sub(State):
        more: Int32[Tensor, "bs"] | None = None

    with pytest.raises(ContractTextError, match="Sub has tensor fields and is no carrier itself"):

        @contract
        def step(it: Sub) -> None: ...


def test_local_classes_and_closures(dims: Dims) -> None:
    kept: list[Tensor] = []

    def build():
        @carrier
        @dataclass
        class Local:
            index: Int64[Tensor, "bs topk"]
            later: Later | None = None

        class Worker(HasDims):
            @contract
            def step(self, it: Local, later: Later | None = None) -> Local:
                kept.append(it.index)
                return it

        @carrier
        @dataclass
        class Later:
            lens: Int64[Tensor, "bs"]

        return Local, Later, Worker

    local, later, worker = build()
    worker(dims).step(local(GOOD, later(GOOD[:, 0])))
    assert kept == [GOOD]
    with pytest.raises(ShapeContractError, match=r"it\.later\.lens"):
        worker(dims).step(local(GOOD, later(GOOD[:2, 0])))
    with pytest.raises(ShapeContractError, match=r"argument later\.lens"):
        worker(dims).step(local(GOOD), later(GOOD[:2, 0]))


def test_a_name_that_never_comes_is_refused_at_the_call(dims: Dims) -> None:
    class Worker(HasDims):
        @contract
        def step(self, state: State, it: Unimported) -> None: ...

    with pytest.raises(ContractTextError, match="'Unimported' of an annotation is not defined"):
        Worker(dims).step(State(GOOD), None)


def test_a_typo_is_refused_at_decoration_although_another_name_is_missing() -> None:
    with pytest.raises(ContractTextError, match=r"SHP102.*did you mean draft_hidden"):

        @contract
        def step(a: Float32[Tensor, "bs draft_hiden"], b: Unimported) -> None: ...


def test_self_of_a_carrier_in_its_own_methods(dims: Dims) -> None:
    @carrier
    @dataclass(slots=True)
    class Batch:
        index: Int64[Tensor, "bs topk"]

        @contract
        def concat(self, others: list[Self], dims: Dims) -> Self:
            return type(self)(torch.cat([self.index, *(it.index for it in others)])[:3])

        @classmethod
        @contract
        def idle(cls, dims: Dims, width: int = 2) -> tuple[Self, Self]:
            made = cls(torch.zeros(0, width, dtype=torch.int64))
            return made, made

    assert Batch(GOOD).concat([Batch(GOOD)], dims).index.shape == (3, 2)
    assert Batch.idle(dims)[0].index.shape == (0, 2)
    with pytest.raises(ShapeContractError, match=r"return\[0\]\.index"):
        Batch.idle(dims, 3)
    with pytest.raises(ShapeContractError, match=r"argument self\.index"):
        Batch(BAD).concat([], dims)


def test_what_cannot_carry_a_contract_is_refused() -> None:
    with pytest.raises(ContractTextError, match="is a class; put @carrier"):
        contract(State)
    with pytest.raises(ContractTextError, match="cannot see into a partial"):
        contract(functools.partial(print, 3))
    with pytest.raises(ContractTextError, match="write @carrier above @dataclass"):

        @dataclass
        @carrier
        class Wrong:
            index: Int64[Tensor, "bs topk"]

    with pytest.raises(ContractTextError, match="hides the method of a carrier"):

        @carrier
        @dataclass
        class Hides:
            index: Int64[Tensor, "bs topk"]

            def check(self) -> None: ...


def test_parameters_may_be_named_like_dims(dims: Dims) -> None:
    @contract
    def step(bs: Int64[Tensor, "bs topk"], topk: Int64[Tensor, "bs"], *, dims: Dims) -> int:
        return bs.shape[0]

    assert step(GOOD, GOOD[:, 0], dims=dims) == 3


def test_the_contract_is_readable_without_a_call() -> None:
    @contract(phase="decode")
    def step(state: State, n: int, dims: Dims) -> State: ...

    spec = step.__shapecheck__.spec
    assert [parameter.name for parameter in spec.parameters] == ["state", "n"]
    assert (spec.phase, spec.dims_parameter) == ("decode", "dims")
    assert [item.name for item in State.__shapecheck__.fields] == ["index", "lens"]
