"""`check_shape`: one tensor held to a text, for what crosses no boundary: a loaded weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapecheck.dims.model import Dims
from shapecheck.dims.parse import parse_shape
from shapecheck.errors import ShapecheckError
from shapecheck.runtime.emit import Emitter
from shapecheck.runtime.numbers import Numbers, variable
from shapecheck.runtime.opened import Value
from shapecheck.runtime.plan import judges
from shapecheck.runtime.report import Reporter
from shapecheck.runtime.stats import Tally
from shapecheck.runtime.tensors import class_name
from shapecheck.runtime.text import INDENT, Text, build
from shapecheck.spec import TensorSpec

if TYPE_CHECKING:
    from torch import Tensor


def check_shape(tensor: Tensor, shape: str, dims: Dims, *, name: str) -> None:
    """The tensor has these axes, written as in an annotation: `"draft_vocab draft_hidden"`.

    Checked at every level, whatever its dtype. Raises ShapeContractError (SHP201) that names the
    axis and calls the tensor `name`; in a trace it is a finding of the trace instead.
    """
    if not isinstance(dims, Dims):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapecheckError(
            f"check_shape({name}): dims is {class_name(dims)}; pass the Dims of the engine"
        )
    reporter = Reporter(where="check_shape", phase=None, dims=dims, tally=Tally("check_shape"))
    namespace = judges(reporter)
    emitter = Emitter(
        text=Text(namespace),
        reporter=reporter,
        numbers=Numbers(dims),
        phase=None,
        values=False,
    )
    # A brace in a path stands for the index of a list.
    path = name.replace("{", "{{").replace("}", "}}")
    emitter.check([Value("tensor", path, shape_spec(shape))])
    maybe = [f"{INDENT}{variable(one)} = None" for one in sorted(emitter.numbers.maybe)]
    source = "\n".join(["def check(tensor):", *maybe, *emitter.text.lines, ""])
    build(source, "check", namespace)(tensor)


def shape_spec(shape: str) -> TensorSpec:
    """A tensor of this shape and of any dtype."""
    import torch

    return TensorSpec(cls=torch.Tensor, shape=parse_shape(shape), kind="Shaped", dtypes=None)
