"""Forms that once went unchecked, or broke the generated code: each test names a whole kind."""

from __future__ import annotations

import dataclasses
import functools
import gc
import operator
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NewType, Self, TypeVar

import pytest
import torch
from jaxtyping import Float32, Int64
from torch import Tensor, nn

from shapecheck import (
    ContractTextError,
    Dims,
    ShapeContractError,
    carrier,
    contract,
    invariant,
)

WIDE, NARROW = torch.zeros(3, 4096), torch.zeros(3, 2048)
ROWS = torch.zeros(3, dtype=torch.int64)


@carrier
@dataclass
class Extend:
    hidden: Float32[Tensor, "bs target_hidden"]


@carrier
@dataclass
class Tree(Extend):
    more: Int64[Tensor, "bs topk"]


AnExtend = TypeVar("AnExtend", bound=Extend)
LateBound = TypeVar("LateBound", bound="Extend")
Anything = TypeVar("Anything")
AWidth = TypeVar("AWidth", bound=Float32[Tensor, "bs target_hidden"])


class MyDims(Dims):
    """An engine's own Dims."""


OwnDims = NewType("OwnDims", MyDims)


def test_parameters_may_be_named_like_builtins(dims: Dims) -> None:
    class Worker:
        def __init__(self, len: MyDims | None = None) -> None:
            self.dims = dims

        @contract
        def step(
            self, id: int, len: list[Extend], isinstance: tuple[Extend, Int64[Tensor, "bs"]],
            enumerate: Extend | Tree, divmod: Float32[Tensor, "bs*topk tokens"],
            AttributeError: Int64[Tensor, "tokens"], getattr: Dims | None = None,
        ) -> int:  # fmt: skip
            return id

    it = Extend(WIDE)
    rest = (torch.zeros(6, 5), torch.zeros(5, dtype=torch.int64))
    assert Worker().step(7, [it], (it, ROWS), it, *rest) == 7
    with pytest.raises(ShapeContractError, match=r"len\[0\]\.hidden"):
        Worker().step(7, [Extend(NARROW)], (it, ROWS), it, *rest)


def test_a_parameter_of_the_generated_code_is_refused() -> None:
    with pytest.raises(ContractTextError, match="rename the parameter"):

        @contract
        def step(_sc_plan: int, a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> None: ...


def test_a_receiver_is_one_whatever_its_annotation_or_name(dims: Dims) -> None:
    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @contract
        def own(self: Self, it: Float32[Tensor, "bs target_hidden"]) -> Extend:
            return Extend(it)

        @contract
        def this(this, it: Float32[Tensor, "bs target_hidden"]) -> Extend:
            return Extend(it)

    for step in (Worker().own, Worker().this):
        step(WIDE)
        with pytest.raises(ShapeContractError, match="target_hidden is 4096"):
            step(NARROW)


def test_dims_are_known_in_every_spelling_of_their_annotation(dims: Dims) -> None:
    own = MyDims(**dict(dims))

    @contract
    def sub(it: Extend, dims: MyDims) -> Extend:
        return it

    @contract
    def noted(it: Extend, dims: Annotated[Dims, "of this rank"] | None) -> Extend:
        return it

    @contract
    def newly(it: Extend, dims: OwnDims) -> Extend:
        return it

    for step in (sub, noted, newly):
        step(Extend(WIDE), own)
        with pytest.raises(ShapeContractError, match="target_hidden is 4096"):
            step(Extend(NARROW), own)


def test_two_dims_parameters_are_refused() -> None:
    with pytest.raises(ContractTextError, match="old is annotated Dims too"):

        @contract
        def step(it: Extend, old: Dims, new: Dims) -> None: ...


def test_dims_that_come_late_are_refused_and_not_looked_for_elsewhere(
    dims: Dims, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("late_dims")
    monkeypatch.setitem(sys.modules, "late_dims", module)
    vars(module).update(contract=contract, Extend=Extend)

    source = """
from __future__ import annotations
class Worker:
    def __init__(self, dims): self.dims = dims
    @contract
    def step(self, it: Extend, dims: Dims) -> Extend: return it
"""
    exec(source, vars(module))
    vars(module)["Dims"] = Dims
    with pytest.raises(ContractTextError, match=r"Dims was not defined yet .* import it above"):
        vars(module)["Worker"](dims).step(Extend(WIDE), dims)


def test_wrong_dims_are_logged_at_warn_and_the_call_proceeds(level, caplog) -> None:
    level("warn")

    @contract
    def takes_dims(it: Extend, dims: Dims) -> Extend:
        return it

    assert takes_dims(it := Extend(WIDE), 3) is it  # type: ignore[arg-type]  # on purpose
    assert "SHP205" in caplog.text


def test_a_type_variable_is_what_it_is_bound_to(dims: Dims) -> None:
    @contract
    def bound(it: AnExtend, dims: Dims) -> AnExtend:
        return it

    @contract
    def late(it: LateBound, dims: Dims) -> LateBound:
        return it

    @contract
    def tensor(it: AWidth, dims: Dims) -> AWidth:
        return it

    for step, good, bad in ((bound, Extend(WIDE), Extend(NARROW)),
                            (late, Extend(WIDE), Extend(NARROW)),
                            (tensor, WIDE, NARROW)):  # fmt: skip
        assert step(good, dims) is good
        with pytest.raises(ShapeContractError, match="target_hidden is 4096"):
            step(bad, dims)


@pytest.mark.parametrize("first", [True, False])
def test_a_union_opens_the_subclass_and_not_its_base(dims: Dims, first: bool) -> None:
    def step(it: object, rows: Int64[Tensor, "bs"], dims: Dims) -> None: ...

    step.__annotations__["it"] = Tree | Extend if first else Extend | Tree
    checked: Callable[..., None] = contract(step)
    checked(Tree(WIDE, torch.zeros(3, 2, dtype=torch.int64)), ROWS, dims)
    with pytest.raises(ShapeContractError, match=r"it\.more"):
        checked(Tree(WIDE, torch.zeros(3, 9, dtype=torch.int64)), ROWS, dims)


@pytest.mark.parametrize(("name", "proceeds"), [("strict", False), ("warn", True)])
@pytest.mark.parametrize("slots", [True, False])
def test_a_field_that_was_never_set_is_a_finding(
    level, caplog, dims: Dims, name: str, proceeds: bool, slots: bool
) -> None:
    level(name)
    made = dataclasses.make_dataclass(
        "Partial",
        [("a", Int64[Tensor, "bs topk"]), ("b", Int64[Tensor, "bs"], field(init=False))],
        slots=slots,
    )
    partial = carrier(made)

    def step(it: Any, dims: Dims) -> int:
        return 1

    step.__annotations__["it"] = partial
    step.__qualname__ = f"step_{slots}"  # a record is made once per name
    checked = contract(step)
    value = partial(torch.zeros(3, 2, dtype=torch.int64))
    if proceeds:
        assert checked(value, dims) == 1
        assert "it.b" in caplog.text
    else:
        with pytest.raises(ShapeContractError, match=r"SHP205 step_.*, argument it\.b\n"):
            checked(value, dims)


def test_decorators_below_and_above_a_contract(dims: Dims) -> None:
    def traced(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)

        return inner

    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @contract
        @traced
        def below(self, it: Extend, *, rows: Int64[Tensor, "bs"]) -> Extend:
            return it

        @traced
        @contract
        def above(self, it: Extend, *, rows: Int64[Tensor, "bs"]) -> Extend:
            return it

        @contract
        @torch.no_grad()
        def torch_below(self, it: Extend, *, rows: Int64[Tensor, "bs"]) -> Extend:
            return it

    worker = Worker()
    for step in (worker.below, worker.above, worker.torch_below):
        step(Extend(WIDE), rows=ROWS)
        with pytest.raises(ShapeContractError, match="target_hidden is 4096"):
            step(Extend(NARROW), rows=ROWS)


def test_what_no_contract_can_stand_on_says_what_to_write() -> None:
    with pytest.raises(ContractTextError, match=r"write @contract\(phase='verify'\)"):
        contract("verify")  # type: ignore[arg-type]  # on purpose
    for phase in ("", 3):
        with pytest.raises(ContractTextError, match="name the phase, for example"):
            contract(phase=phase)  # type: ignore[call-overload]  # on purpose
    for part in (operator.attrgetter("x"), lambda self: None):
        with pytest.raises(ContractTextError, match=r"SHP103.*annotate what it returns"):
            contract(property(part))
    with pytest.raises(ContractTextError, match="@invariant cannot see into a property"):
        invariant(property(lambda self: True))  # type: ignore[type-var]  # on purpose


@pytest.mark.parametrize("inherited", [True, False])
def test_a_use_of_check_is_never_hidden(inherited: bool) -> None:
    class Base:
        def check(self) -> None: ...

    fields = [("rows" if inherited else "check", Int64[Tensor, "bs"])]
    made = dataclasses.make_dataclass("Made", fields, bases=(Base,) if inherited else ())
    with pytest.raises(ContractTextError, match=r"Made\.check hides the method"):
        carrier(made)


def test_any_name_of_a_function_will_do() -> None:
    def step(a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> int:
        return 1

    for name in ("class", "<lambda>", "two words"):
        step.__name__ = name
        assert contract(step)(ROWS, ROWS) == 1


def test_a_refusal_at_the_first_call_has_no_template_in_its_path() -> None:
    @contract
    def step(them: list[Int64[Tensor, "bs*tokens"]]) -> None: ...

    with pytest.raises(ContractTextError, match=r"argument them\[…\]: axis bs\*tokens"):
        step([ROWS])


def test_objects_called_dims_share_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    from shapecheck.runtime import table

    plans: list[object] = []
    compiled = table.compile_plan
    monkeypatch.setattr(
        table, "compile_plan", lambda *given: plans.append(given[1]) or compiled(*given)
    )

    class Worker:
        def __init__(self, dims: object) -> None:
            self.dims = dims

        @contract
        def step(self, a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> None: ...

    for other in (None, [1], [2], object()):
        Worker(other).step(ROWS, ROWS)
    assert plans == [None]
    worker = Worker(None)
    worker.dims = worker.step  # holds the worker
    worker.step(ROWS, ROWS)
    gone = weakref.ref(worker)
    del worker
    gc.collect()
    assert gone() is None


def test_a_dims_property_that_fails_is_not_taken_for_no_dims() -> None:
    class Worker:
        @property
        def dims(self) -> Dims:
            return self.dimz  # type: ignore[attr-defined]  # on purpose

        @contract
        def step(self, it: Extend) -> Extend:
            return it

    with pytest.raises(AttributeError, match="dimz"):
        Worker().step(Extend(NARROW))


def test_a_generic_carrier_is_opened_and_a_tensor_in_its_brackets_refused(dims: Dims) -> None:
    @carrier
    @dataclass
    class Tagged(Generic[Anything]):
        hidden: Float32[Tensor, "bs target_hidden"]
        tag: Anything

    def step(it: object, dims: Dims) -> Extend:
        return Extend(WIDE)

    step.__annotations__["it"] = Tagged[int]
    checked = contract(step)
    checked(Tagged(WIDE, 3), dims)
    with pytest.raises(ShapeContractError, match="target_hidden is 4096"):
        checked(Tagged(NARROW, 3), dims)
    with pytest.raises(ContractTextError, match="in the brackets of a base would not be checked"):

        @carrier
        @dataclass
        class Wide(Tagged[Float32[Tensor, "bs draft_hidden"]]): ...


def test_the_class_that_is_missing_is_named() -> None:
    @contract
    def step(it: Float32[nn.Parameter, "bs"], rows: Int64[Tensor, "bs"]) -> None: ...

    step(nn.Parameter(torch.zeros(3)), ROWS)
    with pytest.raises(ShapeContractError, match=r"float32\[bs\] in a Parameter +got torch"):
        step(torch.zeros(3), ROWS)
