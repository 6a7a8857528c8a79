"""Comprehensions: the element for every turn that is known, else one that stands for all."""

from __future__ import annotations

import ast
from collections.abc import Generator
from contextlib import contextmanager

from shapecheck.static.extent import manageable
from shapecheck.static.frames import Frame
from shapecheck.static.loops import bind_element, bind_turn, turns
from shapecheck.static.mappings import with_entry
from shapecheck.static.values import UNKNOWN, Items, Mapping, Sequence, Value
from shapecheck.static.walk import walk


def comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    """The list of a comprehension; a set of it has no order."""
    first = node.generators[0]
    whole = frame.machine.evaluate(frame, first.iter)
    one_by_one = turns(whole) if len(node.generators) == 1 and not first.ifs else ()
    with _own_names(frame, node.generators):
        if one_by_one and not isinstance(node, ast.SetComp):
            items: list[Value] = []
            for element in one_by_one:
                bind_turn(frame, first.target, element)
                items.append(frame.machine.evaluate(frame, node.elt))
            return manageable(Sequence(tuple(items)))
        _bind_generators(frame, node.generators, whole)
        item = frame.machine.evaluate(frame, node.elt)
        return UNKNOWN if item == UNKNOWN else manageable(Items((item,)))


def dict_comprehension(frame: Frame, node: ast.DictComp) -> Value:
    """The dict of a comprehension."""
    first = node.generators[0]
    whole = frame.machine.evaluate(frame, first.iter)
    made: Value = Mapping((), ())
    with _own_names(frame, node.generators):
        if len(node.generators) == 1 and not first.ifs:
            for element in turns(whole):
                bind_turn(frame, first.target, element)
                key = frame.machine.evaluate(frame, node.key)
                value = frame.machine.evaluate(frame, node.value)
                made = with_entry(made, key, value) if isinstance(made, Mapping) else UNKNOWN
            if made != Mapping((), ()):
                return made
        _bind_generators(frame, node.generators, whole)
        frame.machine.evaluate(frame, node.key)
        value = frame.machine.evaluate(frame, node.value)
        return UNKNOWN if value == UNKNOWN else manageable(Mapping((value,)))


@contextmanager
def _own_names(frame: Frame, generators: list[ast.comprehension]) -> Generator[None]:
    """A place for the names that a comprehension binds: around it they are what they were."""
    targets = [node for one in generators for node in walk(one.target)]
    names = [node.id for node in targets if isinstance(node, ast.Name)]
    around = {name: frame.state.env.get(name) for name in names}
    yield
    for name, value in around.items():
        if value is None:
            frame.state.env.pop(name, None)
        else:
            frame.state.env[name] = value


def _bind_generators(frame: Frame, generators: list[ast.comprehension], whole: Value) -> None:
    for generator in generators:
        if generator is not generators[0]:
            whole = frame.machine.evaluate(frame, generator.iter)
        bind_element(frame, generator.target, whole)
        for condition in generator.ifs:
            frame.machine.evaluate(frame, condition)
