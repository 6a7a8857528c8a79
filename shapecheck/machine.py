"""A state machine over contracts: it drives an object's phases in any order, idle ones included.

Subclass it, name the class under test and how to build it; every method that carries a @contract
becomes a step. What a step returns is fed to later ones, so that rare orders are reached:

    class Worker(ContractMachine):
        subject = DraftWorker
        def build(self, dims): return DraftWorker(dims)

    TestWorker = Worker.TestCase
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from shapecheck.dims.model import Dims
from shapecheck.dims.vocabulary import lookup
from shapecheck.errors import ShapecheckError
from shapecheck.made import NothingToIndexError
from shapecheck.spec import (
    CarrierSpec,
    FunctionContract,
    OptionalSpec,
    TensorSpec,
    carrier_of,
    contract_of,
    tensors_of,
)
from shapecheck.strategies import ROW_COUNTS, pairs, rows
from shapecheck.testing import make_arguments

Counts = dict[str, int]


class ContractMachine(RuleBasedStateMachine):
    """Calls the contracted methods of `subject` in any order, on fresh or returned carriers.

    A broken contract surfaces as the ShapeContractError of the level the tests run at, an error
    of the subject as itself.
    """

    subject: ClassVar[type]
    object_: Any
    dims: Dims

    def build(self, dims: Dims) -> object:
        """The object under test for one pair; raises what its constructor raises."""
        return self.subject(dims)

    def pairs(self) -> st.SearchStrategy[Dims]:
        """The pairs that the machine is run with."""
        return pairs()

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        """Build the subject for a pair."""
        self.dims = data.draw(self.pairs(), label="dims")
        self.object_ = self.build(self.dims)
        self._steps = contracted_methods(self.subject)
        self._returned: list[object] = []

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One phase: a contracted method, with arguments that agree on their row counts."""
        name = data.draw(st.sampled_from(sorted(self._steps)), label="method")
        contract = self._steps[name]
        method: Callable[..., object] = getattr(self.object_, name)
        given: dict[str, object] = {}
        fixed: Counts = {}
        for parameter in contract.spec.parameters:
            if isinstance(parameter.spec, CarrierSpec) and parameter.name != contract.receiver:
                known = self._known(parameter.spec.cls, fixed)
                if known and data.draw(st.booleans(), label=f"reuse {parameter.name}"):
                    given[parameter.name] = data.draw(st.sampled_from(known))
                    fixed |= counts_of(given[parameter.name])
        names = [one for one in per_call_names(contract) if one not in fixed]
        counts = {row: data.draw(rows(), label=row) for row in names}
        try:
            made = self._made(method, given, {**counts, **fixed})
        except NothingToIndexError:
            # No such batch exists; where the largest does not either, the step can never run.
            made = self._made(method, {}, dict.fromkeys(per_call_names(contract), max(ROW_COUNTS)))
        result = method(**made)
        if hasattr(type(result), "__shapecheck__"):
            self._returned.append(result)

    def _made(
        self, method: Callable[..., object], given: dict[str, object], counts: Counts
    ) -> dict[str, object]:
        known = {"bs": 1, **counts}
        return make_arguments(method, self.dims, given=given, **known)  # pyright: ignore[reportArgumentType]  # names of dims

    def _known(self, cls: type, fixed: Counts) -> list[object]:
        """What was returned of this class, of as many rows as is fixed."""
        return [
            one
            for one in self._returned
            if type(one) is cls
            and all(fixed.get(name, size) == size for name, size in counts_of(one).items())
        ]


def counts_of(carrier: object) -> Counts:
    """The sizes of the per-call names that are axes of a carrier's tensors, as they are now."""
    found: Counts = {}
    for item in carrier_of(type(carrier)).fields:
        spec, value = item.spec, getattr(carrier, item.name)
        spec = spec.item if isinstance(spec, OptionalSpec) else spec
        if isinstance(spec, CarrierSpec) and value is not None:
            found |= counts_of(value)
        elif isinstance(spec, TensorSpec) and value is not None:
            for axis, size in zip(spec.shape.axes, value.shape, strict=False):
                name = axis.as_symbol()
                if name is not None and _is_per_call(name):
                    found[name] = size
    return found


def contracted_methods(cls: type) -> dict[str, FunctionContract]:
    """Every public method of the class that carries a contract; raises when there is none."""
    found: dict[str, FunctionContract] = {}
    for name in dir(cls):
        if name.startswith("_"):
            continue
        contract = contract_of(getattr(cls, name))
        if contract is not None:
            found[name] = contract
    if not found:
        raise ShapecheckError(
            f"{cls.__name__} has no method with a @contract: decorate its phases first"
        )
    return found


def per_call_names(contract: FunctionContract) -> list[str]:
    """The names that the arguments of the function bind, sorted."""
    found: set[str] = set()
    for parameter in contract.spec.parameters:
        for _, tensor, _ in tensors_of(parameter.spec, "", contract.phase):
            found |= tensor.shape.names()
    return sorted(filter(_is_per_call, found))


def _is_per_call(name: str) -> bool:
    known = lookup(name)
    return known is not None and known.per_call
