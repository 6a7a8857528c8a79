"""What names say: the size of a config read, a count, the last axis of a tensor, an owner."""

from __future__ import annotations

import ast

from shapecheck.dims.expr import Poly
from shapecheck.static.counts import count_symbol
from shapecheck.static.frames import Frame
from shapecheck.static.guards import last_name
from shapecheck.static.owners import (
    is_config_name,
    last_axis_of_name,
    owner_of_name,
    size_of_name,
    size_owner_of_name,
)
from shapecheck.static.symbols import Ownership, Step, Symbol
from shapecheck.static.values import DType, Instance, Size, Tensor, Unknown, Value
from shapecheck.static.wording import wording


def may_be_size(attribute: str) -> bool:
    """Whether a config would answer with a size or a dtype to this name."""
    return attribute.endswith("dtype") or size_of_name(attribute) != ""


def config_size(
    frame: Frame, owned: Ownership | None, attribute: str, node: ast.expr, *, is_config: bool
) -> Value | None:
    """The size or dtype that a config's attribute is by its name; None where it is neither."""
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
    if owned is not None and isinstance(node, ast.Attribute):
        # What is written here is better evidence than where the config was first asked for.
        own = name_owner(frame, last_name(node.value), node.value)
        owned = own if own is not None and own.owner == owned.owner else owned
    frame.machine.facts.saw_dim_read(span, owned.owner if owned else "")
    text = _text(node)
    symbol = Symbol(name, owned.owner, "", owned) if owned else Symbol(name, "", f"{text}@{span}")
    return Size(Poly.symbol(symbol), (Step("read", text, span),))


def size_of_entry(
    frame: Frame, holder: Value, key: ast.expr, holder_node: ast.expr, node: ast.expr
) -> Value | None:
    """The size that `config["hidden_size"]` is, where the config is a dict of somebody's."""
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        return None
    if isinstance(holder, Unknown):
        owned = holder.owned
    elif isinstance(holder, Instance) and holder.ref.cls is None:
        owned = holder.ref.owned
    else:
        return None
    is_config = is_config_name(last_name(holder_node))
    return config_size(frame, owned, key.value, node, is_config=is_config)


def count_by_name(frame: Frame, name: str, node: ast.expr | ast.arg) -> Size | None:
    """The row count or width that a name states by itself, or None."""
    symbol = count_symbol(name)
    if symbol is None:
        return None
    return Size(Poly.symbol(symbol), (Step("read", _text(node), frame.module.span(node)),))


def tensor_by_name(
    frame: Frame, name: str, owned: Ownership | None, node: ast.expr | ast.arg
) -> Tensor | None:
    """A tensor whose last axis its name and owner tell, or None."""
    kind = last_axis_of_name(name)
    if not kind or owned is None:
        return None
    span = frame.module.span(node)
    symbol = Symbol(kind, owned.owner, "", owned)
    size = Size(Poly.symbol(symbol), (Step("named", _text(node), span),))
    dtype = DType("", owned.owner, (Step("read", _text(node), span),))
    return Tensor(last=size, dtype=dtype, owned=owned)


def name_owner(frame: Frame, name: str, node: ast.expr | ast.arg) -> Ownership | None:
    """The owner that a name states, with the place as evidence."""
    owner = owner_of_name(name)
    if not owner:
        return None
    return Ownership(owner, f"the name {name} says so", frame.module.span(node))


def names_config(node: ast.expr) -> bool:
    """Whether the object read from is called a config in the source."""
    base = node.value if isinstance(node, ast.Attribute) else node
    if isinstance(base, ast.Call) and base.args:
        base = base.args[0]
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    return is_config_name(str(name))


def _text(node: ast.expr | ast.arg) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return wording(node)[:120]
