"""Annotations of contracts as run time reads them: the places of every axis name, carriers opened.

What run time would refuse is Refused; what cannot be told from source is Unresolved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shapecheck.diagnostics.model import Span
from shapecheck.dims.parse import parse_shape
from shapecheck.dims.places import least
from shapecheck.errors import ContractTextError
from shapecheck.markers import Counted, IdsOf, IndexOf, InPhase, counted
from shapecheck.static.contracts.mark_calls import MARKERS, mark_made, means_nothing
from shapecheck.static.contracts.marks import (
    is_harmless,
    mark_of,
    may_name,
    resolve_node,
    tool_name,
)
from shapecheck.static.contracts.names import Item, Names, Place
from shapecheck.static.index import ClassFacts, ModuleFacts
from shapecheck.static.project import Project, Resolved, parse_annotation
from shapecheck.static.walk import walk
from shapecheck.static.wording import wording

_MAX_DEPTH = 12
_SEQUENCES = {"list", "List", "Sequence", "MutableSequence"}
_RECORDS = {"NamedTuple", "TypedDict"}


class Unresolved(Exception):
    """The source does not say what an annotation stands for."""


class Refused(Exception):
    """Run time refuses the annotation (SHP101); `span` is where it stands."""

    def __init__(self, span: Span, message: str) -> None:
        super().__init__(message)
        self.span = span
        self.message = message


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads annotations that stand in `module`; `known` are the names that the project declares."""

    project: Project
    module: ModuleFacts
    known: Mapping[str, bool]
    phase: str | None
    owner: ClassFacts | None = None
    above: tuple[ClassFacts, ...] = ()
    depth: int = 0

    def read(self, node: ast.expr | None, path: str) -> Names:
        """The names of an annotation; raises Refused or Unresolved."""
        if self.depth > _MAX_DEPTH:
            raise Unresolved
        inner = replace(self, depth=self.depth + 1)
        if node is None or (isinstance(node, ast.Constant) and node.value in (None, ...)):
            return Names()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return inner.read(_unquoted(node), path)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return inner.union(_members(node), path, node)
        if isinstance(node, ast.Subscript):
            return inner.subscript(node, path)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return inner.named(resolve_node(self.project, self.module, node), path, node)
        raise Unresolved

    def whole(self, node: ast.expr | None, path: str) -> Names:
        """The names of an annotation that is no member of a union, so that it has no other phase.

        Raises Refused or Unresolved.
        """
        made = self.read(node, path)
        if node is None or made.phase is None or self.phase is None:
            return made
        return self.phased([made], path, node)

    def named(self, found: Resolved, path: str, node: ast.expr) -> Names:
        """A class, or an alias of another annotation."""
        if isinstance(found, ClassFacts):
            return Names() if tool_name(found) else self.of_class(found, path, node)
        if isinstance(found, tuple):
            home, value = found
            if isinstance(value, (ast.Subscript, ast.BinOp, ast.Name, ast.Attribute)):
                return replace(self, module=home).read(value, path)
        if isinstance(found, str):
            if found.rpartition(".")[2] == "Self" and self.owner is not None:
                return self.of_class(self.owner, path, node)
            if is_harmless(found):
                return Names()
        raise Unresolved

    def of_class(self, cls: ClassFacts, path: str, node: ast.expr) -> Names:
        """A carrier, opened; another class has no say unless tensors would cross in it unseen."""
        mark = mark_of(self.project, cls.module, cls.node)
        if mark is not None and mark[0] != "contract":
            return self.opened(cls, path)
        bases = [resolve_node(self.project, cls.module, base) for base in cls.node.bases]
        records = {found.rpartition(".")[2] for found in bases if isinstance(found, str)}
        if cls.is_dataclass or records & _RECORDS:
            home = replace(self, module=cls.module)
            if any(home.is_tensor(item.annotation) for item in fields(cls)):
                raise Refused(
                    self.module.span(node),
                    f"{cls.name} has tensor fields and is no carrier itself, so they would not be "
                    f"checked; put @carrier above {cls.name} (a dataclass), or annotate with a "
                    "carrier",
                )
        return Names()

    def opened(self, cls: ClassFacts, path: str) -> Names:
        """The names of every field of a carrier, those of its bases first."""
        if cls in self.above:
            raise Unresolved
        total = Names(is_carrier=True)
        own: dict[str, tuple[ClassFacts, ast.expr]] = {}
        for one in reversed(self.project.mro(cls)):
            for base in one.node.bases:
                found = resolve_node(self.project, one.module, base)
                outside = isinstance(found, str) and not is_harmless(found)
                if found is None or isinstance(found, tuple) or outside:
                    raise Unresolved
            for item in fields(one):
                if isinstance(item.target, ast.Name):
                    own[item.target.id] = (one, item.annotation)
        for name, (home, annotation) in own.items():
            reader = replace(self, module=home.module, owner=cls, above=(*self.above, cls))
            try:
                total.add(reader.whole(annotation, f"{path}.{name}"))
            except Refused:
                if reader.is_reported(home, annotation):
                    raise Unresolved from None
                raise
        return total

    def is_reported(self, home: ClassFacts, annotation: ast.expr) -> bool:
        """Whether a refused field is reported at its carrier: whatever the phase, it is refused."""
        if mark_of(self.project, home.module, home.node) is None:
            return False
        try:
            replace(self, phase=None).read(annotation, "")
        except (Refused, Unresolved) as error:
            return isinstance(error, Refused)
        return False

    def subscript(self, node: ast.Subscript, path: str) -> Names:
        """`Float[Tensor, "bs"]`, `Annotated[...]`, `Optional[...]`, a tuple, a list."""
        found = resolve_node(self.project, self.module, node.value)
        if isinstance(found, ClassFacts):
            if any(self.is_tensor(one) for one in _arguments(node)):
                raise Unresolved
            return self.named(found, path, node)
        if not isinstance(found, str):
            raise Unresolved
        head = found.rpartition(".")[2]
        items = _arguments(node)
        if found.startswith("jaxtyping."):
            return self.tensor(node, path)
        if not items:  # `tuple[()]`
            return Names()
        if head == "Annotated":
            return self.annotated(items, path)
        if head in ("Optional", "Union"):
            none = [ast.Constant(None)] if head == "Optional" else []
            return self.union([*items, *none], path, node)
        if head in ("Literal", "type", "Type"):
            return Names()
        total = Names()
        if head in ("tuple", "Tuple") and not _is_ellipsis(items[-1]):
            for position, item in enumerate(items):
                total.add(self.whole(item, f"{path}[{position}]"))
            return total
        if head in _SEQUENCES or head in ("tuple", "Tuple"):
            inner = self.whole(items[0], f"{path}[]")
            total.add(inner, times=2)
            total.item = None if inner.phase else inner.item
            return total
        if not is_harmless(found) or any(self.is_tensor(one) for one in items):
            raise Unresolved
        return total

    def annotated(self, items: list[ast.expr], path: str) -> Names:
        """What is marked; `phase("...")` makes it one alternative of several."""
        made = self.read(items[0], path)
        for call in items[1:]:
            if not isinstance(call, ast.Call):
                if made.tensors and means_nothing(self.project, self.module, call):
                    raise Refused(
                        self.module.span(call),
                        f"{wording(call)} means nothing to a tensor contract; use dtype(...), "
                        "ids(...), indexes(...) or phase(...)",
                    )
                continue
            name = self.tool(call)
            if not name and made.tensors:
                raise Unresolved
            if name in MARKERS:
                self.mark(made, name, call, path)
        return made

    def mark(self, made: Names, name: str, call: ast.Call, path: str) -> None:
        """Add what one mark says."""
        try:
            mark = mark_made(name, call)
            said = counted(mark, self.known) if isinstance(mark, IdsOf | IndexOf) else mark
        except ContractTextError:  # reported where the text stands
            raise Unresolved from None
        if said is None:
            raise Unresolved
        span = self.module.span(call)
        if isinstance(said, InPhase):
            if made.phase is not None:
                raise Refused(
                    span, f"phase({said.name!r}) is a second phase of one alternative; keep one"
                )
            made.phase = said.name
            return
        if made.item is None:
            raise Refused(span, f"{name}(...) marks a tensor; put it around the tensor itself")
        wrong = made.item.contradiction(said)
        if wrong is not None:
            raise Refused(span, wrong)
        made.item = made.item.marked(said)
        if isinstance(said, Counted):
            kind = made.places.marks if said.ids_of is None else made.places.ids
            for symbol in sorted(said.axis.symbols()):
                kind.setdefault(symbol, []).append(Place(path, span))

    def is_mark(self, call: ast.Call) -> bool:
        """Whether a call makes a mark."""
        return may_name(self.module, call.func, MARKERS) and self.tool(call) in MARKERS

    def tool(self, call: ast.Call) -> str:
        """The public name of shapecheck that is called, or the empty text."""
        return tool_name(resolve_node(self.project, self.module, call.func))

    def tensor(self, node: ast.Subscript, path: str) -> Names:
        """The names of one shape string."""
        items = _arguments(node)
        text = items[1] if len(items) == 2 else None
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            raise Unresolved
        kind = resolve_node(self.project, self.module, items[0])
        if isinstance(kind, str) and not kind.startswith("torch.") and is_harmless(kind):
            raise Refused(
                self.module.span(items[0]),
                f"{wording(items[0])} is not a torch.Tensor; write Float[Tensor, ...]",
            )
        try:
            shape = parse_shape(text.value, self.known)
        except ContractTextError:  # reported where the text stands
            raise Unresolved from None
        place = Place(path, self.module.span(text))
        jaxtyped = resolve_node(self.project, self.module, node.value)
        kind = jaxtyped.rpartition(".")[2] if isinstance(jaxtyped, str) else ""
        made = Names(tensors=1, item=Item(kind))
        for axis in shape.axes:
            for name in axis.symbols():
                made.places.shapes.setdefault(name, []).append(place)
        return made

    def union(self, items: list[ast.expr], path: str, node: ast.expr) -> Names:
        """One alternative for each phase, or carriers; anything else cannot be told apart."""
        read = [self.read(item, path) for item in items if not _is_none(item)]
        if len(read) == 1 and read[0].phase and len(items) > 1:
            read[0].item = None  # a mark around phases says nothing of any
        if len(read) == 1 or not any(one.tensors for one in read):
            return read[0] if read else Names()
        phases = [one.phase for one in read]
        if all(phases):
            return self.phased(read, path, node)
        if any(phases) or not all(one.is_carrier for one in read):
            raise Refused(
                self.module.span(node),
                "only carriers can be told apart in a union; give each alternative its "
                'phase("..."), or split the field',
            )
        return Names(least([one.places for one in read]), tensors=1, is_carrier=True)

    def phased(self, read: list[Names], path: str, node: ast.expr) -> Names:
        """The alternative of the contract's phase."""
        cases = {str(one.phase): one for one in read}
        if len(cases) < len(read):
            raise Refused(
                self.module.span(node),
                f"{path} has two alternatives of a phase; keep one per phase",
            )
        if self.phase is None:
            raise Unresolved
        if self.phase in cases:
            made = cases[self.phase]
            made.phase = made.item = None
            return made
        said = f"phase {self.phase!r} has no alternative" if self.phase else "no phase is named"
        raise Refused(
            self.module.span(node),
            f"{path} differs per phase ({', '.join(cases)}) and {said}; write phase= of these",
        )

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether a tensor annotation occurs anywhere in it."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            quoted = parse_annotation(node.value)
            return quoted is not None and self.is_tensor(quoted)
        return any(
            isinstance(one, ast.Subscript) and self.is_array(one.value) for one in walk(node)
        )

    def is_array(self, node: ast.expr) -> bool:
        """Whether it is one of jaxtyping's kinds."""
        found = resolve_node(self.project, self.module, node)
        return isinstance(found, str) and found.startswith("jaxtyping.")


def fields(cls: ClassFacts) -> Iterable[ast.AnnAssign]:
    """The annotated fields in the body of a class, class variables aside."""
    for statement in cls.node.body:
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and "ClassVar" not in wording(statement.annotation)
        ):
            yield statement


def _unquoted(node: ast.Constant) -> ast.expr:
    inner = parse_annotation(str(node.value))
    if inner is None:
        raise Unresolved
    for child in walk(inner):
        if isinstance(child, ast.expr):
            ast.copy_location(child, node)
    return inner


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    return [node]


def _arguments(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
