"""The outer function of a contract that is on: it finds the plan of these Dims and calls it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import cast

from shapecheck.runtime.plan import Mode, declared, forwarded
from shapecheck.runtime.stats import tally
from shapecheck.runtime.table import PlanTable
from shapecheck.runtime.text import build
from shapecheck.spec import FunctionContract

Function = Callable[..., object]


def dispatcher(contract: FunctionContract, mode: Mode) -> Function:
    """A function with the signature of the contract's own that enforces it at every call."""
    function = contract.function
    table = PlanTable(contract, mode, tally(function.__module__, contract.where))
    namespace: dict[str, object] = {"_sc_plans": table.plans, "_sc_cold": table.cold}
    source = _source(contract, namespace)
    made = cast(Function, functools.wraps(function)(build(source, contract.name, namespace)))
    made.__dict__["__shapecheck_table__"] = table
    return made


def _source(contract: FunctionContract, namespace: dict[str, object]) -> str:
    function, call = contract.function, f"_sc_plan({forwarded(contract.signature)})"
    head = "def"
    if inspect.iscoroutinefunction(function):
        head, call = "async def", f"await {call}"
    lines = [f"{head} {contract.name}({declared(contract, namespace)}):"]
    given = contract.dims_parameter
    if given is not None:
        lines.append(f"    _sc_dims = {given}")
        if contract.dims_optional and contract.receiver is not None:
            lines += [
                "    if _sc_dims is None:",
                f"        _sc_dims = _sc_getattr({contract.receiver}, 'dims', None)",
            ]
    elif contract.receiver is not None:
        lines += [
            f"    try: _sc_dims = {contract.receiver}.dims",
            "    except _sc_AttributeError: _sc_dims = None",
        ]
    else:
        lines.append("    _sc_dims = None")
    lines += [
        "    _sc_plan = _sc_plans.get(_sc_id(_sc_dims))",
        f"    if _sc_plan is None: _sc_plan = _sc_cold(_sc_dims, {contract.receiver})",
        f"    return {call}",
    ]
    return "\n".join([*lines, ""])
