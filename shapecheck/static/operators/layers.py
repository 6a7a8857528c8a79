"""Layers of torch.nn: made with sizes, called with tensors whose last axis has to fit."""

from __future__ import annotations

import ast

from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import Arguments, Keywords, axis_of, multiplied_dtype
from shapecheck.static.operators.meetings import meet
from shapecheck.static.symbols import Step
from shapecheck.static.values import (
    UNKNOWN,
    Axis,
    External,
    Layer,
    Plain,
    Size,
    Tensor,
    Value,
)

# Where the size that a call has to bring, and the size it gives, are among the arguments.
LAYERS: dict[str, tuple[tuple[str, int], tuple[str, int]]] = {
    "torch.nn.Linear": (("in_features", 0), ("out_features", 1)),
    "torch.nn.Embedding": (("num_embeddings", 0), ("embedding_dim", 1)),
    "torch.nn.LayerNorm": (("normalized_shape", 0), ("normalized_shape", 0)),
    "torch.nn.RMSNorm": (("normalized_shape", 0), ("normalized_shape", 0)),
}


def make_layer(
    frame: Frame, name: str, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Layer:
    """The layer that a constructor of LAYERS makes."""
    takes, gives = LAYERS[name]
    step = Step("created", name, frame.module.span(node))

    def axis(place: tuple[str, int]) -> Axis:
        keyword, position = place
        given: Plain | None = keywords.get(keyword)
        if given is None and position < len(arguments):
            given = arguments[position]
        size = axis_of(given) if given is not None else None
        return Size(size.poly, (*size.trail, step)[-12:]) if size is not None else None

    return Layer(
        axis(takes), axis(gives), lookup=name.endswith("Embedding"), norm=name.endswith("Norm")
    )


def chained(modules: tuple[Value, ...]) -> Value:
    """`Sequential(a, b, c)`: it takes what `a` takes and gives what `c` gives."""
    first, last = (modules[0], modules[-1]) if modules else (UNKNOWN, UNKNOWN)
    takes = first.takes if isinstance(first, Layer) and not first.lookup else None
    return Layer(takes, last.gives if isinstance(last, Layer) else None)


def read_layer(layer: Layer, attribute: str) -> Value:
    """An attribute of the layer: its weight, or a size that it was made with."""
    if layer.takes is layer.gives is None:
        return UNKNOWN
    if attribute in ("weight", "bias"):
        if layer.norm or attribute == "bias":
            return Tensor((layer.gives,))
        rows = (layer.takes, layer.gives) if layer.lookup else (layer.gives, layer.takes)
        return Tensor(rows)
    if attribute in ("in_features", "num_embeddings"):
        return layer.takes or UNKNOWN
    if attribute in ("out_features", "embedding_dim"):
        return layer.gives or UNKNOWN
    return External(f".{attribute}", layer)


def call_layer(frame: Frame, layer: Layer, given: Plain, node: ast.Call) -> Value:
    """What the layer makes of a tensor; its last axis meets what the layer takes."""
    if not isinstance(given, Tensor):
        return Tensor(None, layer.gives) if layer.gives is not None else UNKNOWN
    if layer.lookup:
        facts = frame.machine.facts
        facts.saw_lookup(given.ids, layer.takes, frame.module.span(node), frame.where)
        dims = (*given.dims, layer.gives) if given.dims is not None else None
        return Tensor(dims, layer.gives)
    last = given.axis(-1)
    if layer.takes is not None and last is not None:
        meet(frame, "linear", Tensor((layer.takes,)), Tensor((last,)), node)
    dims = (*given.dims[:-1], layer.gives) if given.dims else None
    return Tensor(dims, layer.gives, multiplied_dtype(given, None))
