"""Drift: the names of a pack that the code of this version does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.model import Diagnostic, Note
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.packs.model import Name, Pack
from shapecheck.static.project import Project, annotation_head

# What these give a class is no field or method that a pack would describe.
_BARE_BASES = {"ABC", "Enum", "Exception", "Generic", "IntEnum", "Module", "Protocol", "object"}


def drifted(project: Project, packs: Iterable[Pack]) -> Iterator[Diagnostic]:
    """One SHP104 for each name; what hangs off a missing name is not named again."""
    for pack in packs:
        missing: set[Name] = set()
        for name in sorted(pack.spans, key=str):
            if not missing & set(_holders(name)) and not _exists(project, name):
                missing.add(name)
                yield _finding(pack, name)


def _holders(name: Name) -> Iterator[Name]:
    yield Name(name.module)
    if name.holder:
        yield Name(name.module, name.holder)
    if name.parameter:
        yield Name(name.module, name.holder, name.member)


def _exists(project: Project, name: Name) -> bool:
    module = project.module(name.module)
    if module is None or not name.holder:
        return module is not None
    found = project.resolve(module, name.holder)
    if isinstance(found, FunctionFacts):
        return not name.member and _has_parameter(found, name.parameter)
    if not isinstance(found, ClassFacts):
        return False
    if not name.member:
        return True
    if not name.parameter and _has_field(project, found, name.member):
        return True
    method = project.method(found, name.member)
    if method is None:
        return _has_foreign_base(project, found)
    return _has_parameter(method, name.parameter)


def _has_parameter(function: FunctionFacts, name: str) -> bool:
    spec = function.node.args
    return name in ("", "return") or any(
        one.arg == name for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
    )


def _has_field(project: Project, cls: ClassFacts, name: str) -> bool:
    order = project.mro(cls)
    known = any(name in (*one.annotations, *one.defaults, *one.stores) for one in order)
    return known or _has_foreign_base(project, cls)


def _has_foreign_base(project: Project, cls: ClassFacts) -> bool:
    """Whether a base lies outside the project: the name may come from there."""
    return any(
        annotation_head(base) not in _BARE_BASES and project.class_of(one.module, base) is None
        for one in project.mro(cls)
        for base in one.node.bases
    )


def _finding(pack: Pack, name: Name) -> Diagnostic:
    return Diagnostic(
        code="SHP104",
        name=NAMES["SHP104"],
        message=f"{name}: the pack {pack.label} describes it, the code does not have it",
        primary=pack.spans[name],
        notes=(
            Note(
                label="settle it",
                message="correct the name in the pack, or narrow its `versions` in pack.toml",
            ),
        ),
        cell=str(name),
    )
