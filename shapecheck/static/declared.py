"""What a name with an annotation holds: the object, tensor or size that the declaration says."""

from __future__ import annotations

import ast

from shapecheck.static.frames import Frame
from shapecheck.static.index import ModuleFacts
from shapecheck.static.named import tensor_by_name
from shapecheck.static.project import annotation_head, parse_annotation
from shapecheck.static.symbols import Ownership
from shapecheck.static.values import UNKNOWN, Instance, ObjectRef, Tensor, Unknown, Value


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
