"""The shape functions that the operator table names: axes of the result, and who must meet."""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Sequence as Items

from shapecheck.dims.expr import Poly
from shapecheck.static.facts import EqualityTest, Meeting
from shapecheck.static.machine import Frame
from shapecheck.static.ops import Operator
from shapecheck.static.symbols import SizePoly, Step
from shapecheck.static.values import (
    UNKNOWN,
    Axis,
    Const,
    DType,
    External,
    Plain,
    Sequence,
    Shape,
    Size,
    Tensor,
    Union,
    Unknown,
    Value,
    plain_values,
    with_step,
)

Arguments = Items[Plain]
Keywords = dict[str, Plain]


def apply(
    frame: Frame, operator: Operator, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """The result of an operator on plain arguments; the receiver of a method comes first."""
    function = _KINDS.get(operator.kind)
    return function(frame, operator, arguments, keywords, node) if function else UNKNOWN


def axis_of(value: Plain) -> Axis:
    """The axis that an integer argument makes, or None when it is not known."""
    if isinstance(value, Size):
        return value
    if isinstance(value, Const) and isinstance(value.value, int):
        return Size(Poly.constant(int(value.value)))
    return None


def _axes(values: Items[Value]) -> tuple[Axis, ...]:
    return tuple(None if isinstance(value, Union) else axis_of(value) for value in values)


def shape_argument(values: Items[Value]) -> tuple[Axis, ...] | None:
    """The axes that `(a, b)` or `((a, b),)` says, or None."""
    if len(values) == 1:
        only = values[0]
        if isinstance(only, Sequence):
            return _axes(only.items)
        if isinstance(only, Shape):
            return only.tensor.dims
        if isinstance(only, Union) or axis_of(only) is None:
            return None
    return _axes(values)


def dtype_argument(value: Plain | None) -> DType | None:
    """The dtype that `dtype=` says, or None."""
    if isinstance(value, DType):
        return value
    if isinstance(value, External) and value.name.startswith("torch."):
        return DType(value.name.removeprefix("torch."))
    return None


def _created(
    frame: Frame, dims: tuple[Axis, ...] | None, keywords: Keywords, node: ast.Call
) -> Value:
    span = frame.module.span(node)
    owned = any(axis and any(s.owner for s in axis.poly.symbols()) for axis in dims or ())
    frame.machine.facts.saw_creation(span, owned=owned)
    if dims is None:
        return Tensor(dtype=dtype_argument(keywords.get("dtype")))
    tensor = Tensor(dims, dtype=dtype_argument(keywords.get("dtype")))
    return with_step(tensor, Step("created", " ".join(ast.unparse(node.func).split()), span))


def _create_variadic(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    given = [keywords[op.keyword]] if op.keyword in keywords else list(args)
    if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("new_"):
        given = given[1:] if op.keyword not in keywords else given
    return _created(frame, shape_argument(given), keywords, node)


def _create(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    given = keywords.get(op.keyword)
    if given is None:
        rest = list(args)
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("new_"):
            rest = rest[1:]
        if op.position < 0:
            given = next((a for a in rest if isinstance(a, Sequence | Shape)), None)
        else:
            given = rest[op.position] if len(rest) > op.position else None
    return _created(frame, shape_argument([given]) if given is not None else None, keywords, node)


def _arange(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    stop = args[0] if len(args) == 1 else None
    return _created(frame, (axis_of(stop) if stop is not None else None,), keywords, node)


def _tensor_of(args: Arguments, index: int = 0) -> Tensor | None:
    value = args[index] if len(args) > index else None
    return value if isinstance(value, Tensor) else None


def _like(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = _tensor_of(args)
    if source is None:
        return UNKNOWN
    frame.machine.facts.saw_creation(frame.module.span(node), owned=False)
    dtype = dtype_argument(keywords.get("dtype")) or source.dtype
    return Tensor(source.dims, source.last, dtype, source.owned)


def _same(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    return args[0] if args and isinstance(args[0], Tensor | Unknown) else UNKNOWN


def _broadcast(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if len(args) < 2:
        return _same(frame, op, args, keywords, node)
    return broadcast(frame, op.kind, args[0], args[1], node)


def broadcast(frame: Frame, operator: str, left: Plain, right: Plain, node: ast.expr) -> Value:
    """The elementwise result of two values; their axes meet."""
    if not isinstance(left, Tensor):
        return right if isinstance(right, Tensor) else UNKNOWN
    if not isinstance(right, Tensor):
        return left
    meet(frame, operator, left, right, node)
    if left.dims is None or right.dims is None:
        return Tensor(None, left.axis(-1) or right.axis(-1))
    longer, shorter = sorted((left.dims, right.dims), key=len, reverse=True)
    kept = list(longer)
    for offset in range(1, len(shorter) + 1):
        mine, theirs = longer[-offset], shorter[-offset]
        kept[-offset] = theirs if mine is None or mine.poly.as_int() == 1 else mine
    return Tensor(tuple(kept))


def meet(
    frame: Frame,
    operator: str,
    left: Tensor,
    right: Tensor,
    node: ast.expr,
    *,
    fills: bool = False,
    cell: str = "",
    tested: EqualityTest | None = None,
) -> None:
    """Record that two tensors' axes have to agree here."""
    if _nothing_owned(left) or _nothing_owned(right):
        return
    frame.machine.facts.meetings.append(
        Meeting(
            operator=operator,
            left=left,
            right=right,
            guards=tuple(frame.guards),
            span=frame.module.span(node),
            cell=cell,
            where=frame.where,
            fills=fills,
            tested=tested,
        )
    )


def _nothing_owned(tensor: Tensor) -> bool:
    axes = tensor.dims if tensor.dims is not None else (tensor.last,)
    return not any(axis and any(s.owner for s in axis.poly.symbols()) for axis in axes)


def _fill(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    if len(args) < 2 or not isinstance(node.func, ast.Attribute):
        return UNKNOWN
    fill(frame, args[0], args[1], node.func.value, node.args[0] if node.args else node, node)
    return args[0]


def fill(
    frame: Frame, into: Plain, source: Plain, target: ast.expr, given: ast.expr, node: ast.expr
) -> None:
    """Record that `source` is copied into the buffer `into`."""
    if not isinstance(into, Tensor) or not isinstance(source, Tensor):
        return
    name = base_text(target)
    texts = {name, base_text(given)}
    tested = next((test for test in frame.tests if test.texts <= texts), None)
    meet(frame, "copy_", into, source, node, fills=True, cell=name, tested=tested)


def base_text(node: ast.expr) -> str:
    """The text of an expression without its slices: `b.x` of `b.x[:n]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return " ".join(ast.unparse(node).split())


def _where(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if len(args) == 3:
        return broadcast(frame, "where", args[1], args[2], node)
    return UNKNOWN


def _dim_argument(args: Arguments, keywords: Keywords, position: int = 1) -> int | None:
    value = keywords.get("dim", keywords.get("axis"))
    if value is None and len(args) > position:
        value = args[position]
    if isinstance(value, Const) and isinstance(value.value, int):
        return int(value.value)
    return None


def _reduce(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = _tensor_of(args)
    if source is None:
        return UNKNOWN
    dim = _dim_argument(args, keywords)
    keep = keywords.get("keepdim") == Const(True)
    if source.dims is None or dim is None or not -len(source.dims) <= dim < len(source.dims):
        return Tensor(dtype=DType(op.dtype) if op.dtype else source.dtype)
    dims = list(source.dims)
    if keep:
        dims[dim] = Size(Poly.constant(1))
    else:
        del dims[dim]
    return Tensor(tuple(dims), dtype=DType(op.dtype) if op.dtype else source.dtype)


def _topk(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = _tensor_of(args)
    if source is None or source.dims is None or not source.dims:
        return Sequence((Tensor(), Tensor(dtype=DType("int64"))))
    count = keywords.get("k", args[1] if len(args) > 1 else UNKNOWN)
    dims = (*source.dims[:-1], axis_of(count))
    return Sequence((Tensor(dims, dtype=source.dtype), Tensor(dims, dtype=DType("int64"))))


def _cat(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    parts = args[0] if args else UNKNOWN
    if not isinstance(parts, Sequence):
        return UNKNOWN
    dim = _dim_argument(args, keywords)
    tensors = [
        plain for item in parts.items for plain in plain_values(item) if isinstance(plain, Tensor)
    ]
    if not tensors:
        return UNKNOWN
    along_last = dim is not None and (dim == -1 or dim == len(tensors[0].dims or ()) - 1)
    if not along_last or dim == 0:
        for other in tensors[1:]:
            meet(frame, "torch.cat", tensors[0], other, node)
    first = tensors[0]
    if first.dims is None:
        return Tensor(None, first.last if not along_last else None, first.dtype)
    at = 0 if dim is None else dim
    if not -len(first.dims) <= at < len(first.dims):
        return Tensor(dtype=first.dtype)
    dims = list(first.dims)
    dims[at] = _sum_axes([t.axis(at) for t in tensors], complete=len(tensors) == len(parts.items))
    return Tensor(tuple(dims), dtype=first.dtype)


def _sum_axes(axes: list[Axis], *, complete: bool) -> Axis:
    total: SizePoly = Poly.constant(0)
    trail: list[Step] = []
    for axis in axes:
        if axis is None or not complete:
            return None
        total = total + axis.poly
        trail.extend(axis.trail)
    return Size(total, tuple(trail[-12:]))


def matmul(frame: Frame, left: Plain, right: Plain, node: ast.expr) -> Value:
    """The matrix product: the inner axes meet."""
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return UNKNOWN
    inner, outer = left.axis(-1), right.axis(-2)
    if inner is not None and outer is not None:
        meet(frame, "matmul", Tensor((inner,)), Tensor((outer,)), node)
    if left.dims is None or right.dims is None or len(right.dims) < 2:
        return Tensor(None, right.axis(-1))
    return Tensor((*left.dims[:-1], right.dims[-1]), dtype=left.dtype)


def _matmul(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    return matmul(frame, args[0], args[1], node) if len(args) > 1 else UNKNOWN


def _linear(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, weight = _tensor_of(args), _tensor_of(args, 1)
    if source is None or weight is None:
        return UNKNOWN
    inner, outer = source.axis(-1), weight.axis(-1)
    if inner is not None and outer is not None:
        meet(frame, "linear", Tensor((inner,)), Tensor((outer,)), node)
    made = weight.axis(-2)
    return Tensor((*source.dims[:-1], made) if source.dims else None, made, source.dtype)


def _embedding(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    ids, weight = _tensor_of(args), _tensor_of(args, 1)
    if weight is None:
        return UNKNOWN
    made = weight.axis(-1)
    dims = (*ids.dims, made) if ids is not None and ids.dims is not None else None
    return Tensor(dims, made, weight.dtype)


def _view(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = _tensor_of(args)
    given = shape_argument(args[1:]) if len(args) > 1 else None
    dtype = source.dtype if source else None
    if given is None:
        return Tensor(dtype=dtype)
    return Tensor(tuple(_solve(axis) for axis in given), dtype=dtype)


def _solve(axis: Axis) -> Axis:
    return None if axis is None or axis.poly.as_int() == -1 else axis


def _flatten(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = _tensor_of(args)
    return Tensor((None,), dtype=source.dtype if source else None) if len(args) == 1 else Tensor()


def _squeeze(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = _tensor_of(args), _dim_argument(args, keywords)
    if source is None or source.dims is None or dim is None:
        return Tensor(dtype=source.dtype if source else None)
    if not -len(source.dims) <= dim < len(source.dims):
        return Tensor(dtype=source.dtype)
    dims = list(source.dims)
    del dims[dim]
    return Tensor(tuple(dims), dtype=source.dtype)


def _unsqueeze(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = _tensor_of(args), _dim_argument(args, keywords)
    if source is None or source.dims is None or dim is None:
        return Tensor(dtype=source.dtype if source else None)
    dims = list(source.dims)
    dims.insert(dim if dim >= 0 else len(dims) + 1 + dim, Size(Poly.constant(1)))
    return Tensor(tuple(dims), dtype=source.dtype)


def _transpose(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = _tensor_of(args)
    one = _dim_argument(args, keywords)
    other = _dim_argument(args, {}, 2)
    if source is None or source.dims is None or one is None or other is None:
        return Tensor(dtype=source.dtype if source else None)
    dims, rank = list(source.dims), len(source.dims)
    if not (-rank <= one < rank and -rank <= other < rank):
        return Tensor(dtype=source.dtype)
    dims[one], dims[other] = dims[other], dims[one]
    return Tensor(tuple(dims), dtype=source.dtype)


def _t(frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    source = _tensor_of(args)
    if source is None or source.dims is None:
        return Tensor(dtype=source.dtype if source else None)
    return Tensor(tuple(reversed(source.dims)), dtype=source.dtype)


def _view_as(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    other = _tensor_of(args, 1)
    return other if other is not None else Tensor()


def _expand(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = _tensor_of(args)
    given = shape_argument(args[1:])
    if given is None or source is None:
        return Tensor()
    dims = [
        source.axis(index - len(given)) if axis and axis.poly.as_int() == -1 else axis
        for index, axis in enumerate(given)
    ]
    return Tensor(tuple(dims), dtype=source.dtype)


def _rank_only(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source = _tensor_of(args)
    if source is None or source.dims is None:
        return Tensor(dtype=source.dtype if source else None)
    return Tensor((None,) * len(source.dims), dtype=source.dtype)


def _repeat_interleave(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = _tensor_of(args), _dim_argument(args, keywords, 2)
    if source is None or source.dims is None or dim != 0 or not source.dims:
        return Tensor(dtype=source.dtype if source else None)
    times = args[1] if len(args) > 1 else keywords.get("repeats", UNKNOWN)
    rows, by = source.dims[0], axis_of(times)
    made = Size(rows.poly * by.poly, (*rows.trail, *by.trail)[-12:]) if rows and by else None
    return Tensor((made, *source.dims[1:]), dtype=source.dtype)


def _gather(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    index = _tensor_of(args, 2)
    source = _tensor_of(args)
    return Tensor(index.dims if index else None, None, source.dtype if source else None)


def _index_select(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim, index = _tensor_of(args), _dim_argument(args, keywords), _tensor_of(args, 2)
    if source is None or source.dims is None or dim is None:
        return Tensor(None, source.last if source and dim == 0 else None)
    if not -len(source.dims) <= dim < len(source.dims):
        return Tensor()
    dims = list(source.dims)
    dims[dim] = index.axis(0) if index else None
    return Tensor(tuple(dims), dtype=source.dtype)


def _size_method(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    source, dim = _tensor_of(args), _dim_argument(args, keywords)
    if source is None:
        return UNKNOWN
    return Shape(source) if dim is None else source.axis(dim) or UNKNOWN


def _from_data(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    data = args[0] if args else UNKNOWN
    if isinstance(data, Tensor):
        return data
    if isinstance(data, Sequence) and not any(
        isinstance(plain, Sequence) for item in data.items for plain in plain_values(item)
    ):
        rows = Size(Poly.constant(len(data.items)))
        return Tensor((rows,), dtype=dtype_argument(keywords.get("dtype")))
    return Tensor(dtype=dtype_argument(keywords.get("dtype")))


def _inplace(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if len(args) > 1 and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
        meet(frame, "in-place", args[0], args[1], node)
    return args[0] if args else UNKNOWN


def index_tensor(frame: Frame, base: Tensor, node: ast.expr, index: Value) -> Value:
    """`x[...]`: slices and indices axis by axis."""
    parts = list(node.elts) if isinstance(node, ast.Tuple) else [node]
    values: list[Value] = (
        list(index.items)
        if isinstance(node, ast.Tuple) and isinstance(index, Sequence)
        else [index] * len(parts)
    )
    if len(values) != len(parts):
        values = [UNKNOWN] * len(parts)
    if base.dims is None:
        plain_prefix = len(parts) == 1 and not _is_none(parts[0])
        keeps = plain_prefix or _is_ellipsis_slice(parts)
        return Tensor(None, base.last if keeps else None, base.dtype, base.owned)
    dims: list[Axis] = []
    position = 0
    for part, value in zip(parts, values, strict=True):
        if _is_none(part):
            dims.append(Size(Poly.constant(1)))
            continue
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            rest = sum(1 for one in parts if not _is_none(one)) - 1
            keep = len(base.dims) - rest
            dims.extend(base.dims[position : max(position, keep)])
            position = max(position, keep)
            continue
        axis = base.dims[position] if position < len(base.dims) else None
        position += 1
        if isinstance(part, ast.Slice):
            whole = part.lower is None and part.upper is None and part.step is None
            dims.append(axis if whole else None)
        elif isinstance(value, Tensor):
            dims.extend(value.dims if value.dims is not None else (None,))
        elif isinstance(value, Const | Size):
            continue
        else:
            return Tensor(None, base.dims[-1] if position < len(base.dims) else None, base.dtype)
    dims.extend(base.dims[position:])
    return Tensor(tuple(dims), dtype=base.dtype)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ellipsis_slice(parts: list[ast.expr]) -> bool:
    last = parts[-1]
    return isinstance(last, ast.Constant) and last.value is Ellipsis


def _stack(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    parts = args[0] if args else UNKNOWN
    if isinstance(parts, Sequence) and parts.items:
        first = parts.items[0]
        if isinstance(first, Tensor) and first.dims is not None:
            return Tensor((None,) * (len(first.dims) + 1), dtype=first.dtype)
    return Tensor()


def _unknown_tensor(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    return Tensor(dtype=DType(op.dtype) if op.dtype else None)


def _opaque(
    frame: Frame, op: Operator, args: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    return UNKNOWN


_KINDS: dict[str, Callable[[Frame, Operator, Arguments, Keywords, ast.Call], Value]] = {
    "create_variadic": _create_variadic,
    "create": _create,
    "arange": _arange,
    "like": _like,
    "same": _same,
    "broadcast": _broadcast,
    "where": _where,
    "reduce": _reduce,
    "reduce_index": _reduce,
    "topk": _topk,
    "cat": _cat,
    "stack": _stack,
    "gather": _gather,
    "index_select": _index_select,
    "matmul": _matmul,
    "linear": _linear,
    "embedding": _embedding,
    "view": _view,
    "flatten": _flatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "transpose": _transpose,
    "t": _t,
    "permute": _rank_only,
    "repeat": _rank_only,
    "expand": _expand,
    "view_as": _view_as,
    "repeat_interleave": _repeat_interleave,
    "split": _opaque,
    "multinomial": _unknown_tensor,
    "one_hot": _unknown_tensor,
    "from_data": _from_data,
    "size": _size_method,
    "numel": _opaque,
    "ndim": _opaque,
    "opaque": _opaque,
    "inplace": _inplace,
    "fill": _fill,
}
