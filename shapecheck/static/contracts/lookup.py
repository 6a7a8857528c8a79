"""Every promise by the class, field, parameter or result it is about: packs before annotations."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from shapecheck.diagnostics.model import Span
from shapecheck.static.contracts.promise import Promise
from shapecheck.static.contracts.reading import Place, read_promise
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.packs.model import Name, Pack
from shapecheck.static.project import Project, annotation_head


@dataclass(eq=False, slots=True)
class Promises:
    """What is promised; asked for the same thing twice, it answers from memory."""

    packs: tuple[Pack, ...] = ()
    named: dict[Name, Promise] = field(default_factory=dict[Name, Promise])
    phases: dict[Name, str] = field(default_factory=dict[Name, str])
    _fields: dict[tuple[ClassFacts, str], Promise | None] = field(
        default_factory=dict[tuple[ClassFacts, str], "Promise | None"]
    )
    _parameters: dict[tuple[FunctionFacts, str], Promise | None] = field(
        default_factory=dict[tuple[FunctionFacts, str], "Promise | None"]
    )
    _words: frozenset[str] = frozenset()
    _shapes: dict[ClassFacts, bool] = field(default_factory=dict[ClassFacts, bool])
    _phases: dict[FunctionFacts, str] = field(default_factory=dict[FunctionFacts, str])

    @staticmethod
    def of(packs: Iterable[Pack]) -> Promises:
        """The promises of these packs and of whatever code is asked about."""
        made = Promises(tuple(packs))
        for pack in made.packs:
            made.named |= pack.promises
            made.phases |= pack.phases
        made._words = frozenset(name.holder for name in made.named if name.holder)
        return made

    def speaks_of(self, text: str) -> bool:
        """Whether a text names a class or a function that a pack describes."""
        return any(word in text for word in self._words)

    @property
    def in_force(self) -> frozenset[tuple[str, Span]]:
        """Every promise in force, of the packs and of code that was read, by text and place."""
        read = (*self._fields.values(), *self._parameters.values(), *self.named.values())
        return frozenset((one.text, one.span) for one in read if one is not None)

    def of_field(self, project: Project, cls: ClassFacts, name: str) -> Promise | None:
        """What the nearest class says of a field, its own annotation included."""
        key = (cls, name)
        if key not in self._fields:
            self._fields[key] = next(
                (
                    promise
                    for one in project.mro(cls)
                    if (promise := self._stated(one, name)) is not None
                ),
                None,
            )
        return self._fields[key]

    def shapes(self, project: Project, cls: ClassFacts) -> bool:
        """Whether any field of a class has a promised shape."""
        if cls not in self._shapes:
            order = project.mro(cls)
            homes = {(one.module.name, one.name) for one in order}
            names = {name for one in order for name in one.annotations}
            names |= {one.member for one in self.named if (one.module, one.holder) in homes}
            promises = (self.of_field(project, cls, name) for name in names if name)
            self._shapes[cls] = any(one is not None and one.cases for one in promises)
        return self._shapes[cls]

    def _stated(self, cls: ClassFacts, name: str) -> Promise | None:
        known = self.named.get(Name(cls.module.name, cls.name, name))
        if known is None and name in cls.annotations:
            known = read_promise(cls.annotations[name], _place(cls.module))
        return known

    def of_parameter(self, function: FunctionFacts, name: str) -> Promise | None:
        """What a function says of a parameter, or of its result under the name `return`."""
        key = (function, name)
        if key not in self._parameters:
            self._parameters[key] = self._annotated(function, name)
        return self._parameters[key]

    def _annotated(self, function: FunctionFacts, name: str) -> Promise | None:
        known = self.named.get(_name(function, name))
        if known is not None:
            return known
        spec = function.node.args
        annotation = function.node.returns if name == "return" else None
        for argument in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]:
            if argument.arg == name:
                annotation = argument.annotation
        return read_promise(annotation, _place(function.module))

    def of_class(self, cls: ClassFacts) -> Promise | None:
        """What a pack says a class itself is."""
        return self.named.get(Name(cls.module.name, cls.name))

    def phase(self, function: FunctionFacts) -> str:
        """The phase that a function or its class states, or the empty text."""
        if function not in self._phases:
            self._phases[function] = self._phase(function)
        return self._phases[function]

    def _phase(self, function: FunctionFacts) -> str:
        known = self.phases.get(_name(function))
        if known is None and function.cls is not None:
            known = self.phases.get(Name(function.module.name, function.cls.name))
        return known or _contract_phase(function)


def _name(function: FunctionFacts, parameter: str = "") -> Name:
    holder = function.cls.name if function.cls else function.name
    return Name(function.module.name, holder, function.name if function.cls else "", parameter)


def _place(module: ModuleFacts) -> Place:
    return Place(module.path, "its annotation")


def _contract_phase(function: FunctionFacts) -> str:
    """The phase in `@contract(phase="verify")`."""
    for node in function.node.decorator_list:
        if isinstance(node, ast.Call) and annotation_head(node.func) == "contract":
            for keyword in node.keywords:
                if keyword.arg == "phase" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value)
    return ""
