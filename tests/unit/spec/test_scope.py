"""Names of annotations are found where the language finds them, and nothing is kept alive."""

import gc
import subprocess
import sys
import types
import weakref
from dataclasses import dataclass

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from shapecheck import carrier, contract
from shapecheck.spec import HintSpec, SequenceSpec, carrier_of, contract_of


class Outer:
    @carrier
    @dataclass
    class Inner:
        a: "Int64[Tensor, 'bs topk']"
        b: "Int64[Tensor, 'bs']"

    @contract
    def step(self, it: "Inner") -> None: ...


def test_a_nested_class_is_found_through_its_class() -> None:
    (parameter,) = contract_of(Outer.step).spec.parameters
    assert parameter.spec.cls is Outer.Inner


def test_the_locals_of_the_definition_are_let_go() -> None:
    def build():
        heavy = torch.zeros(3)
        gone = weakref.ref(heavy)

        @carrier
        @dataclass
        class Local:
            a: "Int64[Tensor, 'bs topk']"
            b: "Int64[Tensor, 'bs']"

        class Worker:
            @contract
            def step(self, it: "Local") -> None: ...

        return Worker, gone

    worker, gone = build()
    gc.collect()
    assert gone() is None
    assert contract_of(worker.step).spec.where == "Worker.step"


def test_a_late_name_holds_the_scope_until_it_is_read() -> None:
    def build():
        class Worker:
            @contract
            def step(self, it: "Late") -> None: ...

        @carrier
        @dataclass
        class Late:
            a: Int64[Tensor, "bs topk"]
            b: Int64[Tensor, "bs"]

        return Worker, Late

    worker, late = build()
    (parameter,) = contract_of(worker.step).spec.parameters
    assert parameter.spec.cls is late
    assert contract_of(worker.step).scope.frame is None


def test_reading_contracts_needs_no_torch() -> None:
    code = (
        "import shapecheck.runtime, shapecheck.spec, shapecheck.testing, sys\n"
        "assert 'torch' not in sys.modules, 'torch'\n"
        "assert 'click' not in sys.modules and 'rich' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_method_hides_no_builtin(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("hides_builtins")
    monkeypatch.setitem(sys.modules, "hides_builtins", module)
    source = """
from __future__ import annotations
from dataclasses import dataclass
from jaxtyping import Int64
from torch import Tensor
from shapecheck import carrier
@carrier
@dataclass
class Queue:
    rows: list[Int64[Tensor, "bs"]]
    count: int
    def list(self): ...
    def int(self): ...
"""
    exec(source, vars(module))
    rows, count = carrier_of(vars(module)["Queue"]).fields
    assert isinstance(rows.spec, SequenceSpec)
    assert count.spec == HintSpec(hint=int)
