"""Reading attributes: where owners spread and where config reads become sizes."""

from __future__ import annotations

import ast
import re

from shapecheck.static.constructed import made_with
from shapecheck.static.contracts.keeping import promised_field
from shapecheck.static.declared import declared_value
from shapecheck.static.facts import Split
from shapecheck.static.frames import Frame
from shapecheck.static.global_names import resolved_value
from shapecheck.static.index import ClassFacts, FunctionFacts
from shapecheck.static.machine import lookup_field
from shapecheck.static.named import (
    config_size,
    count_by_name,
    may_be_size,
    name_owner,
    names_config,
    tensor_by_name,
)
from shapecheck.static.operators.layers import read_layer
from shapecheck.static.owners import is_config_name
from shapecheck.static.symbols import owner_conflict
from shapecheck.static.unions import lift
from shapecheck.static.values import (
    UNKNOWN,
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Layer,
    ModuleValue,
    ObjectRef,
    Plain,
    Shape,
    Tensor,
    Union,
    Unknown,
    Value,
    plain_values,
)

# What hangs off a model's owner under these names is the same model's.
_PART_OF_MODEL = re.compile(r"(?:config|cfg|runner|model|worker|head|embed)$")


def read_attribute(frame: Frame, base: Value, node: ast.Attribute) -> Value:
    """The value of `base.attr` for every alternative of the base."""
    if not isinstance(base, Union):
        return _read(frame, base, node.attr, node)
    value = lift(lambda plain: _read(frame, plain, node.attr, node), base)
    _note_split(frame, base, value, node)
    return value


def read_named(frame: Frame, base: Value, attribute: str, node: ast.expr) -> Value:
    """The same for `getattr(base, "attr")`."""
    return lift(lambda plain: _read(frame, plain, attribute, node), base)


def _read(frame: Frame, base: Plain, attribute: str, node: ast.expr) -> Value:
    if isinstance(base, Instance):
        return _read_field(frame, base.ref, attribute, node)
    if isinstance(base, Unknown):
        return _read_unknown(frame, base, attribute, node)
    if isinstance(base, External):
        return External(f"{base.name}.{attribute}", base.receiver)
    if isinstance(base, Tensor):
        return _read_tensor(base, attribute)
    if isinstance(base, ModuleValue):
        module = frame.machine.project.module(base.name)
        found = frame.machine.project.resolve(module, attribute) if module else None
        return resolved_value(frame, found, attribute)
    if isinstance(base, ClassValue):
        return _read_class(frame, base.cls, attribute)
    if isinstance(base, Layer):
        return read_layer(base, attribute)
    return External(f".{attribute}", base)


def _read_tensor(base: Tensor, attribute: str) -> Value:
    if attribute == "shape":
        return Shape(base)
    if attribute == "dtype":
        return base.dtype or UNKNOWN
    if attribute == "T":
        return Tensor(base.dims and base.dims[::-1], dtype=base.dtype)
    if attribute == "mT":
        if base.dims is not None and len(base.dims) >= 2:
            return Tensor((*base.dims[:-2], base.dims[-1], base.dims[-2]), dtype=base.dtype)
        return Tensor(dtype=base.dtype)
    if attribute == "data":
        return base
    return External(f".{attribute}", base)


def _read_unknown(frame: Frame, base: Unknown, attribute: str, node: ast.expr) -> Value:
    if may_be_size(attribute):
        is_config = names_config(node)
        size = config_size(frame, base.owned, attribute, node, is_config=is_config)
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
    if may_be_size(attribute) and (
        names_config(node) or (cls is not None and is_config_name(cls.name))
    ):
        size = config_size(frame, ref.owned, attribute, node, is_config=True)
        if size is not None:
            return size
    if cls is not None:
        method = machine.project.method(cls, attribute)
        if method is not None:
            return _bound_method(frame, ref, method, node)
        value = lookup_field(frame, ref, attribute) or made_with(frame, ref, attribute)
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
    size = config_size(frame, ref.owned, attribute, node, is_config=False)
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
