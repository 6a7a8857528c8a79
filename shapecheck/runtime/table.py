"""The plans of one contract, found by the identity of Dims, made on a miss, bounded."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from shapecheck.dims.model import Dims
from shapecheck.runtime.plan import Mode, Plan, compile_plan
from shapecheck.runtime.report import Reporter, Site
from shapecheck.runtime.stats import Tally
from shapecheck.spec import FunctionContract, refuse_loose

# Dims in use at once are few (one per adaptive width); two generations of this many are kept.
GENERATION = 32


class PlanTable:
    """Plans by `id` of the Dims object, which is held so that its id stays its own.

    A hit costs one dict lookup and touches nothing. When a generation is full it becomes the old
    one; a plan that is not asked for during a whole generation goes, which is an LRU bound
    without bookkeeping on a hit.
    """

    def __init__(self, contract: FunctionContract, mode: Mode, tally: Tally) -> None:
        self._contract = contract
        self._mode = mode
        self._tally = tally
        self._turn = [0]
        self._lock = threading.Lock()
        self._young: dict[int, Plan] = {}
        self._old: dict[int, Plan] = {}
        self._held: dict[int, object] = {}
        self._held_old: dict[int, object] = {}
        self.find: Callable[[int], Plan | None] = self._young.get

    def cold(self, source: object) -> Plan:
        """The plan for the object that Dims come from; the bare function under torch.compile."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.compiler.is_compiling():
            return self._contract.function
        with self._lock:
            plan = self._young.get(id(source)) or self._old.get(id(source))
            if plan is None:
                plan = self._equal(source) or self._compile(source)
            self._keep(source, plan)
            return plan

    def _equal(self, source: object) -> Plan | None:
        """The plan of an equal Dims: a copy has the same numbers."""
        if not isinstance(source, Dims):
            return None
        for plans, held in ((self._young, self._held), (self._old, self._held_old)):
            for key, other in held.items():
                if isinstance(other, Dims) and other == source:
                    return plans[key]
        return None

    def _compile(self, source: object) -> Plan:
        dims = source if isinstance(source, Dims) else None
        if dims is None:
            self._refuse_as_dims(source)
            refuse_loose(self._contract.spec, names_bind=True)
        return compile_plan(self._contract, dims, self._mode, self._tally, self._turn)

    def _refuse_as_dims(self, source: object) -> None:
        """Raise ShapeContractError (SHP205) when a parameter annotated Dims got something else."""
        name = self._contract.spec.dims_parameter
        if name is None or (source is None and self._contract.dims_optional):
            return
        reporter = Reporter(
            where=self._contract.where,
            phase=self._contract.phase,
            dims=None,
            tally=self._tally,
            sites=[Site(path=f"argument {name}", wanted="Dims")],
        )
        reporter.value(0, source, {}, ())

    def _keep(self, source: object, plan: Plan) -> None:
        if len(self._young) >= GENERATION:
            old, held = dict(self._young), dict(self._held)
            # Plans leave the table before their Dims are let go, so no id is ever another's.
            self._young.clear()
            self._old, self._held_old = old, held
            self._held = {}
        self._held[id(source)] = source
        self._young[id(source)] = plan
