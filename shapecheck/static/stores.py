"""Writing attributes: the field on this path, the cell that collects it, the promise it keeps."""

from __future__ import annotations

import ast

from shapecheck.static.contracts.keeping import keep_field
from shapecheck.static.facts import Write
from shapecheck.static.frames import Frame
from shapecheck.static.guards import last_name
from shapecheck.static.project import annotation_head
from shapecheck.static.symbols import Step
from shapecheck.static.trails import has_trail, with_step
from shapecheck.static.unions import join
from shapecheck.static.values import UNKNOWN, Instance, ObjectRef, Tensor, Value, plain_values

_CONSTRUCTORS = ("__init__", "__post_init__")


def store_attribute(
    frame: Frame, base: Value, attribute: str, value: Value, node: ast.expr
) -> None:
    """`base.attr = value` on this path; the field's cell collects it too."""
    targets = [plain.ref for plain in plain_values(base) if isinstance(plain, Instance)]
    for ref in targets:
        key = (ref, attribute)
        old = frame.state.heap.values.get(key)
        if ref.cls is not None and not has_trail(value):
            stored = keep_field(frame, ref, attribute, value, node)
        elif ref.cls is not None:
            step = Step(
                "stored",
                f"{ref.cls.name}.{attribute}",
                frame.module.span(node),
                f"{ref.cls.name}.{attribute}",
            )
            stored = with_step(value, step)
            for plain in plain_values(value):
                if isinstance(plain, Tensor):
                    write = Write(
                        tensor=plain,
                        span=step.span,
                        literal=_creates(node),
                        initial=_is_initial(frame, ref),
                        names=tuple(
                            f"{one.name}.{attribute}" for one in frame.machine.project.mro(ref.cls)
                        ),
                    )
                    frame.machine.facts.saw_write(step.cell, write)
            stored = keep_field(frame, ref, attribute, stored, node)
        else:
            stored = value
        weak = old is not None and len(targets) > 1
        frame.state.heap.put(key, join(old, stored) if weak and old is not None else stored)
        if not ref.entry:
            frame.machine.settle(key, stored)


def forget_fields(frame: Frame, base: Value) -> None:
    """Any field of `base` was stored on this path: what it held is not known any more."""
    heap = frame.state.heap
    for plain in plain_values(base):
        if isinstance(plain, Instance):
            for key in [key for key in heap.values if key[0] is plain.ref]:
                heap.put(key, UNKNOWN)


def _is_initial(frame: Frame, ref: ObjectRef) -> bool:
    """Whether the object is being made, by its own constructor."""
    own = frame.receiver
    constructs = frame.function is not None and frame.function.name in _CONSTRUCTORS
    return constructs and isinstance(own, Instance) and own.ref is ref


def _creates(node: ast.expr) -> bool:
    """Whether the source is a creation with a literal dtype, or none given.

    `zeros_like(x)` is no choice of its own: it is made as `x` was.
    """
    if not isinstance(node, ast.Call) or last_name(node.func).endswith("_like"):
        return False
    given = next((one.value for one in node.keywords if one.arg == "dtype"), None)
    return given is None or (isinstance(given, ast.Attribute) and annotation_head(given) != "dtype")
