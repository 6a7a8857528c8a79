"""What `enable` and `check` are asked to act on, in odd forms."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
import torch
from jaxtyping import Float32
from torch import Tensor

from shapecheck import (
    Dims,
    ShapecheckError,
    ShapeContractError,
    carrier,
    contract,
    enable,
)

from .conftest import pair_dims

WIDE, NARROW = torch.zeros(3, 4096), torch.zeros(3, 2048)


@carrier
@dataclass
class Extend:
    hidden: Float32[Tensor, "bs target_hidden"]


def test_enable_turns_on_what_a_class_inherits_and_names_what_it_cannot(
    level, caplog, dims: Dims
) -> None:
    level("off")

    def traced(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)

        return inner

    class Base:
        def __init__(self) -> None:
            self.dims = dims

        @contract
        def step(self, it: Extend) -> Extend:
            return it

        @traced
        @contract
        def wrapped(self, it: Extend) -> Extend:
            return it

    class Worker(Base):
        pass

    with enable(Worker) as undo:
        assert undo.still_off == ("Worker.wrapped",)
        with pytest.raises(ShapeContractError):
            Worker().step(Extend(NARROW))
    assert "Worker.wrapped stays off below another decorator" in caplog.text
    assert "step" not in vars(Worker)
    Worker().step(Extend(NARROW))


def test_enable_of_a_setter_alone(level, dims: Dims) -> None:
    level("off")

    class Worker:
        def __init__(self) -> None:
            self.dims = dims

        @property
        def it(self) -> object:
            return None

        @it.setter
        @contract
        def it(self, value: Float32[Tensor, "tokens*topk tokens"]) -> None: ...

    with enable(Worker), pytest.raises(ShapeContractError):
        Worker().it = torch.zeros(5, 2)
    Worker().it = torch.zeros(5, 2)


@pytest.mark.parametrize("target", ["a.module", 3, pair_dims()])
def test_enable_of_neither_class_nor_module_is_refused(target: Any) -> None:
    with pytest.raises(ShapecheckError, match="pass the class or the module itself"):
        enable(target)
    with pytest.raises(ShapecheckError, match="use one of off, warn, strict, full"):
        enable(Extend, level="loud")


@pytest.mark.parametrize("other", [{"target_hidden": 4096}, 3, "dims"])
def test_check_takes_dims_alone(other: Any) -> None:
    with pytest.raises(ShapecheckError, match=r"Extend\.check: dims is .*; pass the Dims"):
        Extend(WIDE).check(other)  # type: ignore[attr-defined]  # given by @carrier


MODULE = """
from shapecheck import Dims, contract
from jaxtyping import Float32
from torch import Tensor

@contract
def step(
    hidden: Float32[Tensor, "bs target_hidden"], dims: Dims
) -> Float32[Tensor, "bs target_hidden"]:
    return hidden
"""


def test_enable_of_a_package_reaches_its_modules(level, tmp_path, monkeypatch, dims: Dims) -> None:
    """Also the names that its own files imported from each other."""
    level("off")
    package = tmp_path / "handed"
    package.mkdir()
    (package / "worker.py").write_text(MODULE)
    (package / "__init__.py").write_text("from handed.worker import step")
    (package / "caller.py").write_text("from handed.worker import step as forward")
    (tmp_path / "handed_on.py").write_text("from handed import step")
    monkeypatch.syspath_prepend(tmp_path)
    handed, caller = import_module("handed"), import_module("handed.caller")
    import_module("handed_on")
    with enable(handed) as undo:
        assert undo.still_off == ("handed_on.step",)
        for step in (handed.step, handed.worker.step, caller.forward):
            with pytest.raises(ShapeContractError, match="target_hidden"):
                step(NARROW, dims)
    caller.forward(NARROW, dims)
    handed.step(NARROW, dims)


HOSTILE = """
import sys
import types
from functools import partial
from shapecheck import contract
from hostile_third import third

class Proxy:
    def __getattr__(self, name):
        raise RuntimeError("working outside of application context")

    @property
    def __class__(self):
        raise RuntimeError("working outside of application context")

class Lazy(types.ModuleType):
    def __getattribute__(self, name):
        raise ImportError("an optional part is not installed")

    @property
    def __dict__(self):
        raise ImportError("an optional part is not installed")

request = Proxy()
sys.modules["hostile.lazy"] = lazy = Lazy("hostile.lazy")
sys.modules["hostile.proxy"] = request
sys.modules["hostile.vendored"] = sys.modules["hostile_third"]

def __getattr__(name):
    raise RuntimeError(f"{name} is read too early")
"""
NESTED = (
    MODULE
    + """
class Outer:
    class Inner:
        @staticmethod
        @contract
        def step(
            hidden: Float32[Tensor, "bs target_hidden"], dims: Dims
        ) -> Float32[Tensor, "bs target_hidden"]:
            return hidden

    again = Inner

class Other:
    inner = Outer.Inner

STEPS = {"step": step}
"""
)


@pytest.fixture
def hostile(level, tmp_path, monkeypatch) -> Iterator[Any]:
    """A package that was imported at off, and whose parts raise when they are asked."""
    level("off")
    package = tmp_path / "hostile"
    package.mkdir()
    (tmp_path / "hostile_third.py").write_text(MODULE + "third = step\n")
    (package / "worker.py").write_text(NESTED)
    (package / "__init__.py").write_text("from hostile.worker import step\n" + HOSTILE)
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("hostile")
    for name in [one for one in sys.modules if one.startswith("hostile")]:
        del sys.modules[name]


def test_enable_asks_nothing_of_what_may_raise(hostile, dims: Dims) -> None:
    """Proxies, lazy modules, and a module's own `__getattr__`."""
    with enable(hostile), pytest.raises(ShapeContractError):
        hostile.step(NARROW, dims)
    hostile.step(NARROW, dims)


def test_enable_leaves_modules_of_other_packages(hostile, dims: Dims) -> None:
    with enable(hostile) as undo:
        assert "hostile_third.step" in undo.still_off
        import_module("hostile_third").step(NARROW, dims)


def test_every_name_of_a_function_is_the_same_one(hostile) -> None:
    worker = hostile.worker
    with enable(hostile):
        assert hostile.step is worker.step
        assert pickle.loads(pickle.dumps(hostile.step)) is hostile.step
    with enable(worker), enable(hostile):
        assert hostile.step is worker.step
    with enable(worker), enable(hostile, level="warn"):
        assert hostile.step is worker.step
    assert hostile.step is worker.step


def test_enable_reaches_nested_classes_from_their_own(hostile, dims: Dims) -> None:
    worker = hostile.worker
    for target in (hostile, worker, worker.Outer, worker.Outer.Inner):
        with enable(target), pytest.raises(ShapeContractError):
            worker.Outer.Inner.step(NARROW, dims)
    with pytest.raises(ShapecheckError, match="nothing here has a contract"):
        enable(worker.Other)


def test_functions_in_lists_are_named(hostile) -> None:
    with enable(hostile) as undo:
        assert "hostile.worker.STEPS" in undo.still_off
