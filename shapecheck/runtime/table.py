"""The plans of one contract, found by the identity of Dims, made on a miss, bounded."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from shapecheck.config import Level
from shapecheck.dims.model import Dims
from shapecheck.errors import ShapeContractError
from shapecheck.runtime.plan import Mode, Plan, compile_plan
from shapecheck.runtime.report import Reporter, Site
from shapecheck.runtime.stats import Tally
from shapecheck.spec import FunctionContract, refuse_loose
from shapecheck.spec.hints import refusal

# Dims in use at once are few (one per adaptive width); two generations of this many are kept.
GENERATION = 32
_tables: weakref.WeakSet[PlanTable] = weakref.WeakSet()
_bare: list[bool] = []


class PlanTable:
    """Plans by `id` of the Dims object, which is held so that its id stays its own.

    A hit costs one dict lookup and touches nothing. When a generation is full it becomes the old
    one; a plan that is not asked for during a whole generation goes, which is an LRU bound
    without bookkeeping on a hit.
    """

    def __init__(self, contract: FunctionContract, mode: Mode, tally: Tally) -> None:
        self._contract = contract
        self.mode = mode
        self._tally = tally
        self._dims_parameter = contract.dims_parameter
        self._turn = [0]
        self._lock = threading.RLock()  # a finaliser may call the method while it compiles
        self.plans: dict[int, Plan] = {}  # the young generation, looked up by the dispatcher
        self._old: dict[int, Plan] = {}
        self._held: dict[int, Dims | None] = {}
        self._held_old: dict[int, Dims | None] = {}
        _tables.add(self)

    def cold(self, source: object, receiver: object = None) -> Plan:
        """The plan for the object that Dims come from; the bare function under torch.compile
        and under a trace.
        """
        torch = sys.modules.get("torch")
        if _bare or (torch is not None and torch.compiler.is_compiling()):
            return self._contract.function
        asked = self._dims_parameter is None or self._contract.dims_optional
        if source is None and asked and isinstance(getattr(type(receiver), "dims", None), property):
            source = cast(Any, receiver).dims  # an AttributeError in the property is not "no Dims"
        if isinstance(source, Dims) and source.symbolic:
            return self._contract.function  # of a trace that has ended
        with self._lock:
            if not self._admits(source):
                return self._contract.function
            if not isinstance(source, Dims):
                source = None  # something else of that name: not held, it may hold the receiver
            plan = self.plans.get(id(source)) or self._old.get(id(source))
            if plan is None:
                plan = self._equal(source) or self._compile(source)
            self._keep(source, plan)
            return plan

    def _equal(self, dims: Dims | None) -> Plan | None:
        """The plan of an equal Dims: a copy has the same numbers."""
        if dims is None:
            return None
        for plans, held in ((self.plans, self._held), (self._old, self._held_old)):
            for key, other in held.items():
                if other == dims:
                    return plans[key]
        return None

    def _compile(self, dims: Dims | None) -> Plan:
        if dims is None:
            refuse_loose(self._contract.spec, names_bind=True)
        return compile_plan(self._contract, dims, self.mode, self._tally, self._turn)

    def _admits(self, source: object) -> bool:
        """Whether the source may stand where Dims is annotated, if it is.

        Anything else is a ShapeContractError (SHP205), which level warn logs.
        """
        name = self._contract.spec.dims_parameter
        if name != self._dims_parameter:  # the dispatcher was written to look elsewhere
            raise refusal(
                f"{self._contract.where}({name})",
                "Dims was not defined yet where @contract was applied",
                "import it above the function",
            )
        optional = source is None and self._contract.dims_optional
        if name is None or optional or isinstance(source, Dims):
            return True
        reporter = Reporter(
            where=self._contract.where,
            phase=self._contract.phase,
            dims=None,
            tally=self._tally,
            sites=[Site(path=f"argument {name}", wanted="Dims")],
        )
        try:
            reporter.value(0, source, {}, ())
        except ShapeContractError as error:
            if self.mode.level is not Level.WARN:
                raise
            reporter.log(error)
        return False

    def forget(self) -> None:
        """Every plan leaves the table; the next call makes its own."""
        with self._lock:
            self.plans.clear()
            self._old, self._held, self._held_old = {}, {}, {}

    def _keep(self, source: Dims | None, plan: Plan) -> None:
        if len(self.plans) >= GENERATION:
            old, held = dict(self.plans), dict(self._held)
            # Plans leave the table before their Dims are let go, so no id is ever another's.
            self.plans.clear()
            self._old, self._held_old = old, held
            self._held = {}
        self._held[id(source)] = source
        self.plans[id(source)] = plan


@contextmanager
def bare_functions() -> Generator[None]:
    """In the block every contract that is on calls its bare function.

    A trace needs it: sizes without a number can be no literals of a plan.
    """
    _bare.append(True)
    for table in list(_tables):
        table.forget()
    try:
        yield
    finally:
        _bare.pop()
