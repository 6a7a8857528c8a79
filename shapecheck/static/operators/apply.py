"""From an operator's name in the table to the function that computes its result."""

from __future__ import annotations

import ast
from collections.abc import Callable

from shapecheck.static.frames import Frame
from shapecheck.static.operators.arguments import Arguments, Keywords
from shapecheck.static.operators.creation import (
    arange,
    create,
    create_variadic,
    from_data,
    like,
    unknown_tensor,
)
from shapecheck.static.operators.elementwise import (
    broadcast_rule,
    fill_rule,
    index_fill_rule,
    inplace,
    same,
    where_rule,
)
from shapecheck.static.operators.joining import cat, einsum, embedding, linear, matmul_rule, stack
from shapecheck.static.operators.parts import chunk, split
from shapecheck.static.operators.reduction import (
    opaque_rule,
    reduce,
    reduce_pair,
    same_pair,
    size_method_rule,
    topk,
)
from shapecheck.static.operators.selection import gather, index_select
from shapecheck.static.operators.table import Operator
from shapecheck.static.operators.views import (
    expand,
    flatten,
    pad,
    rank_only,
    repeat,
    repeat_interleave,
    squeeze,
    t_rule,
    transpose,
    unsqueeze,
    view,
    view_as,
)
from shapecheck.static.values import UNKNOWN, Value

_KINDS: dict[str, Callable[[Frame, Operator, Arguments, Keywords, ast.Call], Value]] = {
    "create_variadic": create_variadic,
    "create": create,
    "arange": arange,
    "like": like,
    "same": same,
    "broadcast": broadcast_rule,
    "where": where_rule,
    "reduce": reduce,
    "reduce_pair": reduce_pair,
    "same_pair": same_pair,
    "reduce_index": reduce,
    "topk": topk,
    "cat": cat,
    "stack": stack,
    "gather": gather,
    "index_select": index_select,
    "matmul": matmul_rule,
    "linear": linear,
    "embedding": embedding,
    "view": view,
    "flatten": flatten,
    "pad": pad,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    "transpose": transpose,
    "t": t_rule,
    "permute": rank_only,
    "repeat": repeat,
    "expand": expand,
    "view_as": view_as,
    "repeat_interleave": repeat_interleave,
    "split": split,
    "chunk": chunk,
    "einsum": einsum,
    "multinomial": unknown_tensor,
    "one_hot": unknown_tensor,
    "from_data": from_data,
    "size": size_method_rule,
    "numel": opaque_rule,
    "ndim": opaque_rule,
    "opaque": opaque_rule,
    "inplace": inplace,
    "fill": fill_rule,
    "index_fill": index_fill_rule,
}


def apply(
    frame: Frame, operator: Operator, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """The result of an operator on plain arguments; the receiver of a method comes first."""
    function = _KINDS.get(operator.kind)
    return function(frame, operator, arguments, keywords, node) if function else UNKNOWN
