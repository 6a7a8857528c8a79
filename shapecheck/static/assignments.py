"""Assignments: names, fields, entries and parts of what is unpacked, on one path."""

from __future__ import annotations

import ast
from functools import lru_cache

from shapecheck.static.arms import name_arms
from shapecheck.static.changes import change, holds_items
from shapecheck.static.expressions import evaluate
from shapecheck.static.frames import Frame
from shapecheck.static.lists import with_item
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
    Plain,
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
    """`a += value`; what is put in a part of a tensor meets the part."""
    target = node.target
    result = evaluate(frame, _sum_of(node))
    if not isinstance(target, ast.Subscript) or holds_items(evaluate(frame, target.value)):
        assign(frame, target, result, node.value)


@lru_cache(maxsize=4096)  # what is called in it is told apart by the identity of its nodes
def _sum_of(node: ast.AugAssign) -> ast.expr:
    return ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node.value)


@lru_cache(maxsize=4096)
def _loaded(target: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    if isinstance(target, ast.Name):
        loaded: ast.expr = ast.Name(target.id, ast.Load())
    elif isinstance(target, ast.Attribute):
        loaded = ast.Attribute(target.value, target.attr, ast.Load())
    else:
        loaded = ast.Subscript(target.value, target.slice, ast.Load())
    return ast.copy_location(loaded, target)


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
        if holds_items(held):
            _put_in(frame, target, held, value, source)
            return
        for one in plain_values(evaluate(frame, _loaded(target))):
            for other in plain_values(value):
                fill(frame, one, other, target.value, source, source)


def _put_in(
    frame: Frame, target: ast.Subscript, held: Value, value: Value, source: ast.expr
) -> None:
    """`held[key] = value`: an entry of a dict, an item of a list."""
    key = UNKNOWN if isinstance(target.slice, ast.Slice) else evaluate(frame, target.slice)

    def put(one: Plain) -> Value:
        return (
            with_entry(one, key, value) if isinstance(one, Mapping) else with_item(one, key, value)
        )

    change(frame, target.value, held, put, source)
    if isinstance(target.value, ast.Subscript):
        assign(frame, target.value, lift(put, held), source)


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
