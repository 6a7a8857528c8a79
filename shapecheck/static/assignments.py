"""Assignments: names, fields, entries and parts of what is unpacked, on one path."""

from __future__ import annotations

import ast

from shapecheck.static.arms import name_arms
from shapecheck.static.expressions import evaluate
from shapecheck.static.machine import Frame
from shapecheck.static.mappings import with_entry
from shapecheck.static.named import count_by_name
from shapecheck.static.named_tuples import as_row
from shapecheck.static.operators.meetings import base_text, fill
from shapecheck.static.shapes import unpacked_shape
from shapecheck.static.sides import note_formula
from shapecheck.static.stores import store_attribute
from shapecheck.static.unions import lift, union
from shapecheck.static.values import (
    UNKNOWN,
    Alternative,
    Mapping,
    Sequence,
    Shape,
    Unknown,
    Value,
    alternatives,
    plain_values,
)


def run_assign(frame: Frame, node: ast.Assign) -> None:
    """`a = b = value`."""
    value = evaluate(frame, node.value)
    if isinstance(node.value, ast.IfExp):
        name_arms(frame, node)
    for target in node.targets:
        if isinstance(target, ast.Attribute) and isinstance(node.value, ast.Call):
            frame.machine.facts.destinations[frame.module.span(node.value)] = base_text(target)
        assign(frame, target, value, node.value)


def run_annotated(frame: Frame, node: ast.AnnAssign) -> None:
    """`a: int = value`; without a value nothing happens."""
    if node.value is not None:
        assign(frame, node.target, evaluate(frame, node.value), node.value)


def run_augmented(frame: Frame, node: ast.AugAssign) -> None:
    """`a += value`."""
    value = evaluate(frame, node.value)
    target = node.target
    if isinstance(target, (ast.Name, ast.Attribute)):
        load = ast.copy_location(_loaded(target), target)
        result = evaluate(
            frame, ast.copy_location(ast.BinOp(load, node.op, node.value), node.value)
        )
        assign(frame, target, result, node.value)
    elif isinstance(value, Unknown):
        evaluate(frame, target.value)


def _loaded(target: ast.Name | ast.Attribute) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    return ast.Attribute(target.value, target.attr, ast.Load())


def assign(frame: Frame, target: ast.expr, value: Value, source: ast.expr) -> None:
    """`target = value` on this path."""
    if isinstance(target, ast.Name):
        # A name of a count is an alias of what it was given; only an unknown takes its meaning.
        count = count_by_name(frame, target.id, target) if value == UNKNOWN else None
        value = UNKNOWN if target.id in frame.shared else value
        frame.state.env[target.id] = value if count is None else count
        note_formula(frame, target, value, source)
    elif isinstance(target, ast.Attribute):
        store_attribute(frame, evaluate(frame, target.value), target.attr, value, source)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value, source)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, UNKNOWN, source)
    elif isinstance(target, ast.Subscript):
        held = evaluate(frame, target.value)
        if any(isinstance(one, Mapping) for one in plain_values(held)):
            key = evaluate(frame, target.slice)
            assign(frame, target.value, lift(lambda one: with_entry(one, key, value), held), source)
            return
        into = evaluate(frame, ast.copy_location(_read_of(target), target))
        for one in plain_values(into):
            for other in plain_values(value):
                fill(frame, one, other, target.value, source, source)


def _read_of(target: ast.Subscript) -> ast.expr:
    return ast.Subscript(target.value, target.slice, ast.Load())


def _unpack(frame: Frame, targets: list[ast.expr], value: Value, source: ast.expr) -> None:
    columns: list[list[Alternative]] = [[] for _ in targets]
    for choice in alternatives(value):
        plain = choice.value
        if isinstance(plain, Shape):
            plain = Sequence(unpacked_shape(plain, len(targets)))
        plain = as_row(frame, plain, source)
        fits = isinstance(plain, Sequence) and len(plain.items) == len(targets)
        owned = plain.owned if isinstance(plain, Unknown) else None
        for position, column in enumerate(columns):
            item: Value = Unknown(owned) if owned else UNKNOWN
            if fits and isinstance(plain, Sequence):
                item = plain.items[position]
            column.extend(
                Alternative(one.value, (*choice.guards, *one.guards)) for one in alternatives(item)
            )
    given = source.elts if isinstance(source, (ast.Tuple, ast.List)) else []
    for position, (target, column) in enumerate(zip(targets, columns, strict=True)):
        place = given[position] if len(given) == len(targets) else source
        assign(frame, target, union(column), place)
