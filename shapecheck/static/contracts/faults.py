"""What run time would refuse of the contracts in a module, told without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapecheck.diagnostics.model import Span
from shapecheck.static.contracts.declared import Declarations
from shapecheck.static.contracts.loose import carrier_faults, function_faults
from shapecheck.static.contracts.marks import definitions, mark_of
from shapecheck.static.contracts.texts import alias_faults, text_faults
from shapecheck.static.facts import ContractFault
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts


def contract_faults(declarations: Declarations, module: ModuleFacts) -> Iterator[ContractFault]:
    """Every malformed shape text and mark, unknown axis name and loose name of its contracts.

    Each once, also where several contracts rest on the text.
    """
    found: dict[tuple[str, str, Span], ContractFault] = {}
    for fault in _faults(declarations, module):
        found.setdefault((fault.code, fault.message, fault.span), fault)
    yield from found.values()


def _faults(declarations: Declarations, module: ModuleFacts) -> Iterator[ContractFault]:
    declarations.refresh()
    yield from alias_faults(declarations, module)
    for node, facts in definitions(module):
        mark = mark_of(declarations.project, module, node)
        if mark is None or (mark[0] == "contract") is isinstance(node, ast.ClassDef):
            continue
        declarations.refresh()
        yield from text_faults(declarations, module, node)
        if isinstance(facts, ClassFacts):
            yield from carrier_faults(declarations, facts, mark)
        elif isinstance(facts, FunctionFacts) and "overload" not in facts.decorators:
            yield from function_faults(declarations, facts, mark[1])
