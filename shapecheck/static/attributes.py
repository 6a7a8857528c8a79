"""Reading and writing attributes: where owners spread and where config reads become sizes."""

from __future__ import annotations

import ast
import re

from shapecheck.diagnostics.model import Span
from shapecheck.dims.expr import Poly
from shapecheck.static.contracts.keeping import keep_field, promised_field
from shapecheck.static.counts import count_symbol
from shapecheck.static.facts import Split, Write
from shapecheck.static.heap import Heap
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.machine import Frame, State, lookup_field
from shapecheck.static.owners import (
    is_config_name,
    last_axis_of_name,
    owner_of_name,
    size_of_name,
    size_owner_of_name,
)
from shapecheck.static.project import Resolved, annotation_head, parse_annotation
from shapecheck.static.symbols import Ownership, Step, Symbol, owner_conflict
from shapecheck.static.values import (
    UNKNOWN,
    ClassValue,
    DType,
    External,
    FunctionValue,
    Instance,
    ModuleValue,
    ObjectRef,
    Plain,
    Shape,
    Size,
    Tensor,
    Union,
    Unknown,
    Value,
    join,
    lift,
    plain_values,
    with_step,
)

# What hangs off a model's owner under these names is the same model's.
_PART_OF_MODEL = re.compile(r"(?:config|cfg|runner|model|worker|head|embed)$")


def read_attribute(frame: Frame, base: Value, node: ast.Attribute) -> Value:
    """The value of `base.attr` for every alternative of the base."""
    value = lift(lambda plain: _read(frame, plain, node.attr, node), base)
    if isinstance(base, Union):
        _note_split(frame, base, value, node)
    return value


def read_named(frame: Frame, base: Value, attribute: str, node: ast.expr) -> Value:
    """The same for `getattr(base, "attr")`."""
    return lift(lambda plain: _read(frame, plain, attribute, node), base)


def _read(frame: Frame, base: Plain, attribute: str, node: ast.expr) -> Value:
    if isinstance(base, Instance):
        return _read_field(frame, base.ref, attribute, node)
    if isinstance(base, ModuleValue):
        module = frame.machine.project.module(base.name)
        found = frame.machine.project.resolve(module, attribute) if module else None
        return resolved_value(frame, found, attribute)
    if isinstance(base, External):
        return External(f"{base.name}.{attribute}", base.receiver)
    if isinstance(base, ClassValue):
        return _read_class(frame, base.cls, attribute)
    if isinstance(base, Tensor):
        return _read_tensor(base, attribute)
    if isinstance(base, Unknown):
        return _read_unknown(frame, base, attribute, node)
    return External(f".{attribute}", base)


def _read_tensor(base: Tensor, attribute: str) -> Value:
    if attribute == "shape":
        return Shape(base)
    if attribute == "dtype":
        return base.dtype or UNKNOWN
    if attribute in ("T", "mT"):
        if base.dims is not None and len(base.dims) >= 2:
            return Tensor((*base.dims[:-2], base.dims[-1], base.dims[-2]), None, base.dtype)
        return Tensor(dtype=base.dtype)
    if attribute == "data":
        return base
    return External(f".{attribute}", base)


def _read_unknown(frame: Frame, base: Unknown, attribute: str, node: ast.expr) -> Value:
    size = _config_read(frame, base.owned, attribute, node, is_config=_names_config(node))
    if size is not None:
        return size
    count = count_by_name(frame, attribute, node)
    if count is not None:
        return count
    owned = name_owner(frame, attribute, node) or base.owned
    tensor = tensor_by_name(frame, attribute, owned, node)
    if tensor is not None:
        return tensor
    return Unknown(owned) if owned else UNKNOWN


def _read_class(frame: Frame, cls: ClassFacts, attribute: str) -> Value:
    method = frame.machine.project.method(cls, attribute)
    if method is not None:
        receiver = ClassValue(cls) if method.kind == "class" else None
        return FunctionValue(method, receiver)
    return UNKNOWN


def _read_field(frame: Frame, ref: ObjectRef, attribute: str, node: ast.expr) -> Value:
    known = frame.state.heap.values.get((ref, attribute))
    if known is not None:
        return known
    promised = promised_field(frame, ref, attribute)
    if promised is not None:
        return promised
    cls = ref.cls
    machine = frame.machine
    is_config = _names_config(node) or (cls is not None and is_config_name(cls.name))
    if is_config:
        size = _config_read(frame, ref.owned, attribute, node, is_config=True)
        if size is not None:
            return size
    if cls is not None:
        method = machine.project.method(cls, attribute)
        if method is not None:
            return _bound_method(frame, ref, method, node)
        value = lookup_field(frame, ref, attribute)
        if value is not None and value != UNKNOWN:
            return _spread(frame, ref, attribute, value, node)
    return _child(frame, ref, attribute, node)


def _bound_method(frame: Frame, ref: ObjectRef, method: FunctionFacts, node: ast.expr) -> Value:
    if method.kind == "property":
        value = frame.machine.call(frame, method, Instance(ref), (), {}, node)
        return _spread(frame, ref, method.name, value, node)
    if method.kind == "static":
        return FunctionValue(method)
    if method.kind == "class":
        return FunctionValue(method, ClassValue(ref.cls) if ref.cls else None)
    return FunctionValue(method, Instance(ref))


def _spread(frame: Frame, ref: ObjectRef, attribute: str, value: Value, node: ast.expr) -> Value:
    """A name, or the owner of what it hangs off, owns what has no owner of its own."""
    owned = name_owner(frame, attribute, node)
    if owned is None and ref.owned is not None and _PART_OF_MODEL.search(attribute):
        owned = ref.owned
    if owned is None:
        return value

    def own(plain: Plain) -> Value:
        if isinstance(plain, Instance) and plain.ref.owned is None:
            plain.ref.owned = owned
        if isinstance(plain, Unknown) and plain.owned is None:
            return tensor_by_name(frame, attribute, owned, node) or Unknown(owned)
        if isinstance(plain, Tensor) and plain.dims is None and plain.last is None:
            return tensor_by_name(frame, attribute, owned, node) or plain
        return plain

    return lift(own, value)


def _child(frame: Frame, ref: ObjectRef, attribute: str, node: ast.expr) -> Value:
    """What an object from outside holds under a name: the same every time it is asked."""
    known = ref.children.get(attribute)
    if known is None:
        known = _new_child(frame, ref, attribute, node)
        ref.children[attribute] = known
    return known


def _new_child(frame: Frame, ref: ObjectRef, attribute: str, node: ast.expr) -> Value:
    machine = frame.machine
    named = name_owner(frame, attribute, node)
    owned = named or ref.owned
    size = _config_read(frame, ref.owned, attribute, node, is_config=False)
    if size is None:
        size = count_by_name(frame, attribute, node)
    if size is not None:
        return size
    annotation, home = None, frame.module
    if ref.cls is not None:
        for one in machine.project.mro(ref.cls):
            if attribute in one.annotations:
                annotation, home = one.annotations[attribute], one.module
                break
    return declared_value(frame, home, attribute, annotation, owned, node)


def declared_value(
    frame: Frame,
    module: ModuleFacts,
    name: str,
    annotation: ast.expr | None,
    owned: Ownership | None,
    node: ast.expr | ast.arg,
) -> Value:
    """What a name with an annotation holds when nobody was seen to put anything there."""
    tensor = tensor_by_name(frame, name, owned, node)
    if tensor is not None:
        return tensor
    cls = frame.machine.project.class_of(module, annotation)
    if cls is not None:
        ref = ObjectRef(cls, owned or frame.machine.class_owner(cls), None, True, name)
        return Instance(ref)
    if _is_tensor(annotation):
        return Tensor(owned=owned)
    return Unknown(owned) if owned else UNKNOWN


def _is_tensor(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = parse_annotation(annotation.value)
    if isinstance(annotation, ast.BinOp):
        return _is_tensor(annotation.left) or _is_tensor(annotation.right)
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice
        return annotation_head(annotation) in ("Optional", "Annotated") and any(
            _is_tensor(one) for one in (inner.elts if isinstance(inner, ast.Tuple) else [inner])
        )
    return annotation_head(annotation) == "Tensor"


def _config_read(
    frame: Frame, owned: Ownership | None, attribute: str, node: ast.expr, *, is_config: bool
) -> Value | None:
    if attribute.endswith("dtype") and owned is not None:
        step = Step("read", _text(node), frame.module.span(node))
        return DType("", owned.owner, (step,))
    name = size_of_name(attribute)
    if not name:
        return None
    stated = size_owner_of_name(attribute)
    span = frame.module.span(node)
    if stated:
        owned = Ownership(stated, f"the name {attribute} says so", span)
    if owned is None and not is_config:
        return None
    frame.machine.facts.saw_dim_read(span, owned.owner if owned else "")
    text = _text(node)
    symbol = Symbol(name, owned.owner, "", owned) if owned else Symbol(name, "", f"{text}@{span}")
    return Size(Poly.symbol(symbol), (Step("read", text, span),))


def count_by_name(frame: Frame, name: str, node: ast.expr | ast.arg) -> Size | None:
    """The row count or width that a name states by itself, or None."""
    symbol = count_symbol(name)
    if symbol is None:
        return None
    return Size(Poly.symbol(symbol), (Step("read", _text(node), _span(frame, node)),))


def tensor_by_name(
    frame: Frame, name: str, owned: Ownership | None, node: ast.expr | ast.arg
) -> Tensor | None:
    """A tensor whose last axis its name and owner tell, or None."""
    kind = last_axis_of_name(name)
    if not kind or owned is None:
        return None
    span = _span(frame, node)
    symbol = Symbol(kind, owned.owner, "", owned)
    size = Size(Poly.symbol(symbol), (Step("read", _text(node), span),))
    dtype = DType("", owned.owner, (Step("read", _text(node), span),))
    return Tensor(last=size, dtype=dtype, owned=owned)


def name_owner(frame: Frame, name: str, node: ast.expr | ast.arg) -> Ownership | None:
    """The owner that a name states, with the place as evidence."""
    owner = owner_of_name(name)
    if not owner:
        return None
    return Ownership(owner, f"the name {name} says so", _span(frame, node))


def _span(frame: Frame, node: ast.expr | ast.arg) -> Span:
    return Span(path=frame.module.path, line=node.lineno, column=node.col_offset + 1)


def _names_config(node: ast.expr) -> bool:
    """Whether the object read from is called a config in the source."""
    base = node.value if isinstance(node, ast.Attribute) else node
    if isinstance(base, ast.Call) and base.args:
        base = base.args[0]
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    return is_config_name(str(name))


def _text(node: ast.expr | ast.arg) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return " ".join(ast.unparse(node).split())[:120]


def store_attribute(
    frame: Frame, base: Value, attribute: str, value: Value, node: ast.expr
) -> None:
    """`base.attr = value` on this path; the field's cell collects it too."""
    targets = [plain.ref for plain in plain_values(base) if isinstance(plain, Instance)]
    for ref in targets:
        key = (ref, attribute)
        old = frame.state.heap.values.get(key)
        if ref.cls is not None:
            step = Step(
                "stored",
                f"{ref.cls.name}.{attribute}",
                frame.module.span(node),
                f"{ref.cls.name}.{attribute}",
            )
            stored = with_step(value, step)
            for plain in plain_values(value):
                if isinstance(plain, Tensor):
                    write = Write(tensor=plain, span=step.span, literal=_creates(node))
                    frame.machine.facts.saw_write(step.cell, write)
            stored = keep_field(frame, ref, attribute, stored, node)
        else:
            stored = value
        weak = old is not None and len(targets) > 1
        frame.state.heap.put(key, join(old, stored) if weak and old is not None else stored)
        if not ref.entry:
            frame.machine.settle(ref, attribute, stored)


def _creates(node: ast.expr) -> bool:
    """Whether the source is a creation with a literal dtype, or none given."""
    if not isinstance(node, ast.Call):
        return False
    given = next((one.value for one in node.keywords if one.arg == "dtype"), None)
    return given is None or (isinstance(given, ast.Attribute) and annotation_head(given) != "dtype")


def _note_split(frame: Frame, base: Union, value: Value, node: ast.Attribute) -> None:
    """Note a field whose alternatives carry two owners: one object stands in for another."""
    if not isinstance(value, Union):
        return
    sizes = [
        (axis, plain.has_no_rows)
        for plain in plain_values(value)
        if isinstance(plain, Tensor) and (axis := plain.axis(-1)) is not None
    ]
    holders = {
        plain.ref.cls.name
        for plain in plain_values(base)
        if isinstance(plain, Instance) and plain.ref.cls is not None
    }
    if len(holders) != 1:
        return
    field = f"{holders.pop()}.{node.attr}"
    for index, (left, left_empty) in enumerate(sizes):
        for right, right_empty in sizes[index + 1 :]:
            if owner_conflict(left.poly, right.poly):
                frame.machine.facts.splits.append(
                    Split(
                        field=field,
                        left=left,
                        right=right,
                        empty=(left_empty, right_empty),
                        span=frame.module.span(node),
                    )
                )


def resolved_value(frame: Frame, found: Resolved, name: str) -> Value:
    """The value of what a global name stands for."""
    if isinstance(found, ClassFacts):
        return ClassValue(found)
    if isinstance(found, FunctionFacts):
        return FunctionValue(found)
    if isinstance(found, ModuleFacts):
        return ModuleValue(found.name)
    if isinstance(found, str):
        return External(found)
    if isinstance(found, tuple):
        return _global_value(frame, found[0], name, found[1])
    return UNKNOWN


def _global_value(frame: Frame, module: ModuleFacts, name: str, node: ast.expr) -> Value:
    key = (module.name, name)
    machine = frame.machine
    if key not in machine.globals:
        machine.globals[key] = UNKNOWN
        if isinstance(node, ast.Constant | ast.Name | ast.Dict | ast.Tuple | ast.List):
            inner = Frame(machine, module, None, None, State({}, Heap()), frame.depth + 1)
            machine.globals[key] = machine.evaluate(inner, node)
    return machine.globals[key]
