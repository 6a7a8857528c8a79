"""One exec-made function per contract and Dims: the checks, the call, the checks of the result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shapecheck.config import Level
from shapecheck.dims.model import Dims
from shapecheck.errors import ShapeContractError
from shapecheck.runtime.emit import Emitter
from shapecheck.runtime.generators import drive, drive_async
from shapecheck.runtime.numbers import Numbers, variable
from shapecheck.runtime.opened import Value
from shapecheck.runtime.report import Reporter
from shapecheck.runtime.stats import Tally
from shapecheck.runtime.text import INDENT, Text, build
from shapecheck.runtime.values import Values
from shapecheck.spec import FunctionContract, Spec

Plan = Callable[..., object]
# Calls of a method that are checked before SHAPECHECK_EVERY thins them out.
FIRST_CALLS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """How the plans of one contract enforce it."""

    level: Level
    every: int = 1


def compile_plan(
    contract: FunctionContract, dims: Dims | None, mode: Mode, tally: Tally, turn: list[int]
) -> Plan:
    """The function that stands in for `contract.function` while Dims is `dims`.

    `turn` is the one-element count by which all plans of a method take turns under
    SHAPECHECK_EVERY.
    Raises ContractTextError for a contract that these Dims cannot decide, ShapecheckError for a
    name without a number.
    """
    spec = contract.spec
    reporter = Reporter(where=spec.where, phase=spec.phase, dims=dims, tally=tally)
    namespace = {
        **judges(reporter),
        "_sc_fn": contract.function,
        "_sc_calls": tally.calls,
        "_sc_turn": turn,
        "_sc_log": reporter.log,
        "_sc_Broken": ShapeContractError,
        "_sc_drive": drive,
        "_sc_drive_async": drive_async,
    }
    emitter = Emitter(
        text=Text(namespace),
        reporter=reporter,
        numbers=Numbers(dims),
        phase=spec.phase,
        values=mode.level is Level.FULL,
    )
    return build(_Writer(contract, emitter, mode).source(), contract.name, namespace)


def judges(reporter: Reporter) -> dict[str, object]:
    """The functions that every generated check calls when it fails, or to read data."""
    import torch

    values = Values(reporter)
    return {
        "_sc_compiling": torch.compiler.is_dynamo_compiling,
        "_sc_tensor": reporter.tensor,
        "_sc_value": reporter.value,
        "_sc_absent": reporter.absent,
        "_sc_unset": reporter.unset,
        "_sc_index": values.index,
        "_sc_holds": values.holds,
        "_sc_relates": values.relates,
    }


class _Writer:
    """The frame around the checks: signature, count, call, result."""

    def __init__(self, contract: FunctionContract, emitter: Emitter, mode: Mode) -> None:
        self._contract = contract
        self._emitter = emitter
        self._mode = mode
        function = contract.function
        self._async = inspect.iscoroutinefunction(function)
        self._generator = inspect.isgeneratorfunction(function)
        self._async_generator = inspect.isasyncgenfunction(function)

    def source(self) -> str:
        """The whole text of the plan."""
        emitter, contract = self._emitter, self._contract
        spec = contract.spec
        call = f"_sc_fn({forwarded(contract.signature)})"
        call = f"await {call}" if self._async else call
        arguments = [
            Value(parameter.name, f"argument {parameter.name}", parameter.spec)
            for parameter in spec.parameters
        ]
        self._direction(lambda: emitter.check(arguments), on_broken=f"return {call}")
        if self._generator or self._async_generator:
            self._stream(call, spec.yields, spec.returns)
        else:
            self._result(call, spec.returns)
        body = emitter.text.lines
        emitter.text.lines = []
        self._preamble(call)
        head = "async def" if self._async else "def"
        first = f"{head} {contract.name}({declared(contract, emitter.text.namespace)}):"
        return "\n".join([first, *emitter.text.lines, *body, ""])

    def _preamble(self, call: str) -> None:
        emitter = self._emitter
        with emitter.text.block("if not _sc_compiling():"):
            emitter.text.line("_sc_calls[0] += 1")
            if self._mode.every > 1:
                turn = "_sc_turn[0]"
                emitter.text.line(f"{turn} += 1")
                skip = f"{turn} > {FIRST_CALLS} and {turn} % {self._mode.every}"
                emitter.text.line(f"if {skip}: return {call}")
        for name in sorted(emitter.numbers.maybe):
            emitter.text.line(f"{variable(name)} = None")

    def _direction(self, emit: Callable[[], None], *, on_broken: str) -> None:
        emitter = self._emitter
        if self._mode.level is not Level.WARN:
            emit()
            return
        with emitter.text.block("try:", conditional=False):
            emit()
        with emitter.text.block("except _sc_Broken as _sc_broken:", conditional=False):
            emitter.text.line("_sc_log(_sc_broken)")
            emitter.text.line(on_broken)

    def _result(self, call: str, returns: Spec | None) -> None:
        emitter = self._emitter
        relations = self._contract.invariants if self._mode.level is Level.FULL else ()
        if returns is None and not relations:
            emitter.text.line(f"return {call}")
            return
        emitter.text.line(f"_sc_result = {call}")
        self._direction(lambda: self._check_result(returns, relations), on_broken="pass")
        emitter.text.line("return _sc_result")

    def _check_result(self, returns: Spec | None, relations: Sequence[Plan]) -> None:
        emitter = self._emitter
        if returns is not None:
            emitter.check([Value("_sc_result", "return", returns)])
        if not relations:
            return
        names = [*self._contract.signature.parameters]
        offered = ", ".join([*(f"{name!r}: {name}" for name in names), "'result': _sc_result"])
        with emitter.text.block("if not _sc_compiling():"):
            for relation in relations:
                name = emitter.text.constant("relation", relation)
                emitter.text.line(emitter.fail("relates", name, f"{{{offered}}}"))

    def _stream(self, call: str, yields: Spec | None, returns: Spec | None) -> None:
        emitter = self._emitter
        item = self._nested("item", "yield", yields)
        result = self._nested("returned", "return", returns)
        driver = "_sc_drive_async" if self._async_generator else "_sc_drive"
        emitter.text.line(f"return {driver}({call}, {item}, {result})")

    def _nested(self, stem: str, path: str, spec: Spec | None) -> str:
        """A function inside the plan that checks one value; names bound by then are its own."""
        if spec is None:
            return "None"
        emitter = self._emitter
        name, value = emitter.text.fresh(stem), "_sc_value_in"
        known = emitter.numbers.known()
        bound, maybe = set(emitter.numbers.bound), set(emitter.numbers.maybe)
        given = "".join(f", {variable(each)}={variable(each)}" for each in known)
        with emitter.text.block(f"def {name}({value}{given}):", conditional=False):
            body = len(emitter.text.lines)
            self._direction(
                lambda: emitter.check([Value(value, path, spec)]), on_broken="return None"
            )
            fresh = sorted(emitter.numbers.maybe - maybe)
            emitter.text.lines[body:body] = [
                INDENT * emitter.text.depth + f"{variable(each)} = None" for each in fresh
            ]
        emitter.numbers.bound, emitter.numbers.maybe = bound, maybe
        return name


def declared(contract: FunctionContract, namespace: dict[str, object]) -> str:
    """The parameter list of the function, its defaults held in `namespace`."""
    parts: list[str] = []
    parameters = list(contract.signature.parameters.values())
    starred = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    for index, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        text = star.get(parameter.kind, "") + parameter.name
        if parameter.default is not inspect.Parameter.empty:
            namespace[f"_sc_default_{parameter.name}"] = parameter.default
            text += f"=_sc_default_{parameter.name}"
        parts.append(text)
        last_positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY and (
            index + 1 == len(parameters)
            or parameters[index + 1].kind is not inspect.Parameter.POSITIONAL_ONLY
        )
        if last_positional:
            parts.append("/")
    return ", ".join(parts)


def forwarded(signature: inspect.Signature) -> str:
    """The argument list that hands every parameter on."""
    form = {
        inspect.Parameter.VAR_POSITIONAL: "*{0}",
        inspect.Parameter.VAR_KEYWORD: "**{0}",
        inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
    }
    return ", ".join(
        form.get(parameter.kind, "{0}").format(parameter.name)
        for parameter in signature.parameters.values()
    )
