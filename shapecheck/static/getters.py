"""Getters: `config.get_hidden_size()` is `config.hidden_size` where its body is not seen."""

from __future__ import annotations

import ast

from shapecheck.static.attributes import read_named
from shapecheck.static.frames import Frame
from shapecheck.static.owners import size_of_name
from shapecheck.static.values import Size, Unknown, Value, plain_values

GET = "get_"


def read_getter(frame: Frame, node: ast.Call, function: ast.Attribute, made: Value) -> Value:
    """The size that a getter's name states, unless its body said what it returns."""
    name = function.attr.removeprefix(GET)
    if node.args or not size_of_name(name):
        return made
    if not all(isinstance(one, Unknown) for one in plain_values(made)):
        return made
    holder = frame.machine.evaluate(frame, function.value)
    read = read_named(frame, holder, name, function)
    return read if any(isinstance(one, Size) for one in plain_values(read)) else made
