"""Time in contracts: what the checks of an iteration cost, measured on its own hand-overs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from engine.step import Step
from shapecheck.config import Level, settings
from shapecheck.runtime.dispatch import dispatcher
from shapecheck.runtime.plan import Mode
from shapecheck.spec import FunctionContract, contract_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One contracted call: the object, its contract, what went in and what came out."""

    owner: object
    contract: FunctionContract
    arguments: tuple[object, ...]
    result: object

    def check_seconds(self, repeats: int) -> float:
        """The best time of checking this crossing once, the work of the method left out."""
        result = self.result
        stub = functools.wraps(self.contract.function)(lambda *_: result)
        mode = Mode(level=settings().level, every=1)
        checked = dispatcher(replace(self.contract, function=stub), mode)
        both = _best(lambda: checked(self.owner, *self.arguments), repeats)
        return max(0.0, both - _best(lambda: stub(self.owner, *self.arguments), repeats))


@contextmanager
def recorded(step: Step) -> Iterator[list[Crossing]]:
    """The list fills with every contracted call that the step's phases make inside."""
    crossings: list[Crossing] = []
    phases = [step.prefill, step.proposer, step.verify, step.commit, *vars(step.proposer).values()]
    patched: list[tuple[object, str]] = []
    for phase in phases:
        for name, contract in _contracts(phase):
            vars(phase)[name] = _recorder(phase, name, contract, crossings)
            patched.append((phase, name))
    try:
        yield crossings
    finally:
        for phase, name in patched:
            del vars(phase)[name]


def check_seconds(crossings: list[Crossing], *, repeats: int = 50) -> float:
    """What checking these crossings takes; 0 at level off, where nothing is checked."""
    if settings().level is Level.OFF:
        return 0.0
    return sum(crossing.check_seconds(repeats) for crossing in crossings)


def _contracts(phase: object) -> Iterator[tuple[str, FunctionContract]]:
    if not hasattr(phase, "__dict__"):
        return
    for name in dir(type(phase)):
        contract = contract_of(getattr(type(phase), name, None))
        if contract is not None and name not in vars(phase):
            yield name, contract


def _recorder(
    phase: object, name: str, contract: FunctionContract, crossings: list[Crossing]
) -> Callable[..., object]:
    inner = getattr(phase, name)

    def call(*arguments: object) -> object:
        result = inner(*arguments)
        crossings.append(
            Crossing(owner=phase, contract=contract, arguments=arguments, result=result)
        )
        return result

    return call


def _best(call: Callable[[], object], repeats: int) -> float:
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
