"""Levels, their flags, enabling later, and the counts."""

import logging
import subprocess
import sys
import types
from dataclasses import dataclass

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from shapecheck import (
    Dims,
    ShapecheckError,
    ShapeContractError,
    carrier,
    contract,
    enable,
    stats,
)
from shapecheck.config import Level, Settings, parse

GOOD = torch.zeros(3, 2, dtype=torch.int64)
BAD = torch.zeros(3, 9, dtype=torch.int64)
LENS = torch.zeros(3, dtype=torch.int64)


def stepping():
    class Worker:
        def __init__(self, dims: Dims) -> None:
            self.dims = dims
            self.ran = 0

        @contract(phase="decode")
        def step(
            self, index: Int64[Tensor, "bs topk"], result: Tensor = GOOD
        ) -> Int64[Tensor, "bs topk"]:
            self.ran += 1
            return result

        @staticmethod
        @contract
        def join(a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> None: ...

    return Worker


@pytest.mark.parametrize("name", [None, "", "off", "OFF"])
def test_off_returns_the_very_function(level, name: str | None) -> None:
    level(name)

    def step(a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> None: ...

    method, static, prop = classmethod(step), staticmethod(step), property(step)
    assert contract(step) is step
    assert contract(phase="decode")(step) is step
    assert contract(method) is method
    assert contract(static) is static
    assert contract(prop) is prop
    assert step.__shapecheck__.spec.where.endswith("step")
    step(GOOD, BAD)


@pytest.mark.parametrize("name", ["off", "strict"])
def test_a_carrier_is_its_class_at_every_level(level, name: str) -> None:
    level(name)

    @dataclass(slots=True)
    class State:
        index: Int64[Tensor, "bs topk"]

    before = State.__init__
    assert carrier(State) is State
    assert State.__init__ is before


def test_strict_raises_before_the_body_runs(dims: Dims) -> None:
    worker = stepping()(dims)
    with pytest.raises(ShapeContractError):
        worker.step(BAD)
    assert worker.ran == 0


def test_warn_logs_once_per_site_and_code_and_proceeds(level, dims: Dims, caplog) -> None:
    level("warn")
    worker = stepping()(dims)
    with caplog.at_level(logging.WARNING, logger="shapecheck"):
        for _ in range(3):
            assert worker.step(BAD, BAD) is BAD
        assert worker.step(GOOD, BAD) is BAD
        assert worker.step(GOOD.int()) is GOOD
    assert worker.ran == 5
    texts = [record.getMessage() for record in caplog.records]
    assert [text.splitlines()[0] for text in texts] == [
        "SHP201 Worker.step (phase decode), argument index",
        "SHP201 Worker.step (phase decode), return",
        "SHP207 Worker.step (phase decode), argument index",
    ]
    assert all(record.diagnostic.code.startswith("SHP") for record in caplog.records)


def test_warn_proceeds_past_a_plain_hint(level, caplog) -> None:
    level("warn")

    @contract
    def step(a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"], n: int) -> int:
        return n

    assert step(LENS, LENS, "three") == "three"
    assert [record.diagnostic.code for record in caplog.records] == ["SHP205"]


def test_every_checks_the_first_calls_and_then_some(level, dims: Dims) -> None:
    level("strict", "10")
    worker = stepping()(dims)
    refused = 0
    for _ in range(164):
        try:
            worker.step(BAD)
        except ShapeContractError:
            refused += 1
    assert refused == 64 + 10


@pytest.mark.parametrize("value", ["on", "1", "strict,full"])
def test_an_unknown_level_stops_with_the_list(value: str) -> None:
    with pytest.raises(ShapecheckError, match="use one of off, warn, strict, full"):
        parse({"SHAPECHECK": value})


@pytest.mark.parametrize("value", ["0", "-3", "two", "1.5"])
def test_an_unknown_stride_stops(value: str) -> None:
    with pytest.raises(ShapecheckError, match="whole number of 1 or more"):
        parse({"SHAPECHECK_EVERY": value})


def test_flags_are_parsed() -> None:
    assert parse({}) == Settings(level=Level.OFF, every=1)
    assert parse({"SHAPECHECK": " Full ", "SHAPECHECK_EVERY": "8"}) == Settings(
        level=Level.FULL, every=8
    )


def test_a_bad_level_stops_the_import_of_a_decorated_module() -> None:
    code = (
        "import torch; from torch import Tensor; from jaxtyping import Int64\n"
        "from shapecheck import contract\n"
        "@contract\n"
        "def f(a: Int64[Tensor, 'bs'], b: Int64[Tensor, 'bs']): ...\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), "SHAPECHECK": "loud"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "SHAPECHECK='loud' is no level: use one of off, warn, strict, full" in done.stderr


def test_enable_and_undo(level, dims: Dims) -> None:
    level("off")
    made = stepping()
    before, join = made.step, made.__dict__["join"]
    worker = made(dims)
    bound = worker.step
    worker.step(BAD)
    undo = enable(made)
    with pytest.raises(ShapeContractError):
        worker.step(BAD)
    with pytest.raises(ShapeContractError):
        made.join(LENS, LENS[:2])
    assert bound(BAD) is GOOD  # bound before: stays off
    undo()
    undo()
    assert made.step is before
    assert made.__dict__["join"] is join
    worker.step(BAD)
    with enable(made, level="full"), pytest.raises(ShapeContractError):
        worker.step(BAD)
    worker.step(BAD)


def test_enable_a_module_says_what_stays_off(level, caplog, monkeypatch) -> None:
    level("off")
    home, user = types.ModuleType("home_of_step"), types.ModuleType("user_of_step")

    def step(a: Int64[Tensor, "bs"], b: Int64[Tensor, "bs"]) -> None: ...

    home.step = user.step = contract(step)
    monkeypatch.setitem(sys.modules, "home_of_step", home)
    monkeypatch.setitem(sys.modules, "user_of_step", user)
    with caplog.at_level(logging.WARNING, logger="shapecheck"), enable(home) as undo:
        assert undo.still_off == ("user_of_step.step",)
        with pytest.raises(ShapeContractError):
            home.step(LENS, LENS[:2])
        user.step(LENS, LENS[:2])
    assert "user_of_step.step was imported before and stays off" in caplog.text


def test_enable_without_contracts_is_refused() -> None:
    class Plain:
        def step(self) -> None: ...

    with pytest.raises(ShapecheckError, match="nothing here has a contract to turn on"):
        enable(Plain)


def test_enable_changes_the_level_of_what_is_on(level, dims: Dims) -> None:
    level("warn")
    made = stepping()
    warned = made.step
    with enable(made, level="strict") as strictly:
        with pytest.raises(ShapeContractError):
            made(dims).step(BAD)
        enforced = made.step
        with enable(made, level="strict"):
            assert made.step is enforced, "already so"
    assert made.step is warned
    assert not strictly.still_off
    made(dims).step(BAD)


def test_stats_count_calls_and_violations(dims: Dims) -> None:
    class Counted:
        def __init__(self) -> None:
            self.dims = dims

        @contract
        def step(self, index: Int64[Tensor, "bs topk"]) -> Int64[Tensor, "bs topk"]:
            return index

    worker = Counted()
    for _ in range(4):
        worker.step(GOOD)
    for wrong in (BAD, BAD, GOOD.int()):
        with pytest.raises(ShapeContractError):
            worker.step(wrong)
    counts = stats()[f"{__name__}.Counted.step"]
    assert counts.calls == 7
    assert counts.violations == {"SHP201": 2, "SHP207": 1}
