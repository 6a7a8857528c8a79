"""The recording ShapeEnv: every private name of torch that tracing needs stands in this file, but
for those of `size_arithmetic`, which only saves time.

torch's own ShapeEnv turns the first equality into a replacement and answers the later ones by it;
this one answers every question from the hints, keeps nothing, and tells a listener.
"""

# torch gives no complete types for its private surface.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportIncompatibleMethodOverride=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import inspect
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeAlias, cast

import sympy
import torch

from shapecheck.errors import ShapecheckError
from shapecheck.symbolic.expressions import Expression
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.size_arithmetic import remembered

_REMEDY = "install a torch of the tested range, pip install 'torch-shapecheck[engine]'"

try:
    from torch._dispatch.python import enable_python_dispatcher
    from torch._dynamo.source import ConstantSource
    from torch._guards import Source
    from torch._ops import OpOverload
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
        FakeTensor,
        FakeTensorMode,
        UnsupportedOperatorException,
        in_kernel_invocation_manager,
    )
    from torch.fx.experimental.sym_node import SymNode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
    from torch.utils._python_dispatch import _disable_current_modes
except ImportError as error:
    raise ShapecheckError(
        f"torch {torch.__version__} has moved what tracing needs ({error}): {_REMEDY}"
    ) from error

Operator: TypeAlias = OpOverload[..., object]
"""One overload of one torch operator, as a dispatch mode gets it."""

_SYM_NODE = inspect.getfile(SymNode)


class Question(NamedTuple):
    """How torch asked.

    `fallback` is set when the asker can do without an answer, `required` when it goes on only if
    the relation holds, `about_layout` when it chooses between a view and a copy and needs nothing.
    """

    fallback: bool | None = None
    required: bool = False
    about_layout: bool = False
    from_kernel: bool = False


_LAID_OUT = Question(about_layout=True)


class Listener(Protocol):
    """Who answers what the traced code asks about sizes."""

    def truth(self, expr: Expression, question: Question) -> bool:
        """Whether the relation holds."""
        ...

    def number(self, expr: Expression) -> int | float:
        """The number of a size that the code needs as a number."""
        ...

    def data_size(self, symbol: Expression, *, kind: str) -> None:
        """A size or scalar that depends on tensor data came into being."""
        ...


class RecordingShapeEnv(ShapeEnv):
    """A ShapeEnv that adds no guard, replacement or axiom: it asks the listener every time."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(specialize_zero_one=False, duck_shape=False)
        self._listener = listener
        self._rebuilding = False

    @contextmanager
    def rebuilding(self) -> Generator[None]:
        """In the block a known result is laid out again: its questions are about layout."""
        self._rebuilding = True
        try:
            yield
        finally:
            self._rebuilding = False

    def evaluate_expr(
        self,
        orig_expr: Expression,
        hint: object = None,
        fx_node: object = None,
        size_oblivious: bool = False,
        fallback_value: bool | None = None,
        *,
        forcing_spec: bool = False,
    ) -> Expression:
        """The listener's answer, as sympy wants it."""
        if orig_expr.is_number or orig_expr in (sympy.true, sympy.false):
            return orig_expr
        if isinstance(orig_expr, (sympy.Rel, sympy.logic.boolalg.BooleanFunction)):
            question = _LAID_OUT if self._rebuilding else _question(fallback_value)
            return sympy.sympify(self._listener.truth(orig_expr, question))
        return sympy.sympify(self._listener.number(orig_expr))

    def guard_or_defer_runtime_assert(  # pyright: ignore[reportIncompatibleVariableOverride]  # the base is wrapped in an lru_cache
        self, orig_expr: Expression, msg: str, fx_node: object = None
    ) -> bool:
        """Deferring would hide the question, so it is answered at once."""
        if orig_expr in (sympy.true, sympy.false):
            return bool(orig_expr)
        question = _LAID_OUT if self._rebuilding else Question(required=True)
        return self._listener.truth(orig_expr, question)

    def create_unbacked_symint(self, source: object = None) -> torch.SymInt:
        """torch's data-dependent size, announced to the listener."""
        created = super().create_unbacked_symint(cast(Source | None, source))
        self._listener.data_size(created.node.expr, kind="int")
        return created

    def create_unbacked_symfloat(self) -> torch.SymFloat:
        """torch's data-dependent scalar, announced to the listener."""
        created = super().create_unbacked_symfloat()
        self._listener.data_size(created.node.expr, kind="float")
        return created

    def create_unbacked_symbool(self) -> torch.SymBool:
        """torch's data-dependent truth value, announced to the listener."""
        created = super().create_unbacked_symbool()
        for symbol in created.node.expr.free_symbols:
            self._listener.data_size(symbol, kind="bool")
        return created

    def named_size(self, name: str, hint: int) -> tuple[Expression, int]:
        """A fresh symbol for one dimension and the SymInt that passes for its int.

        The symbol is never shared with another dimension of the same number.
        """
        symbol = self.create_symbol(hint, ConstantSource(name), dynamic_dim=DimDynamic.DYNAMIC)
        return symbol, cast(int, self.create_symintnode(symbol, hint=hint))


# What stands between a question and who asks it.
_PLUMBING = frozenset(
    """evaluate_sym_node evaluate guard_bool bool_ __bool__ expect_true _guard_or guard_or_false
    guard_or_true maybe_guard_or_false maybe_guard_or_true guard_size_oblivious _check _check_with
    _check_index _check_value _check_type _hinted_eq""".split()  # noqa: SIM905  # a list fills a page
)
_LAYOUT = ("contiguous", "stride", "dense", "channels_last", "_perm", "_collapse_view", "core_alg")


def _question(fallback: bool | None) -> Question:
    frame = inspect.currentframe()
    frame = frame.f_back if frame is not None else None  # evaluate_expr
    passed: set[str] = set()
    last = None
    while frame is not None and (frame.f_back is not None):
        frame = frame.f_back
        if frame.f_code.co_name not in _PLUMBING:
            break
        last = frame
        passed.add(frame.f_code.co_name)
    asker = frame.f_code.co_name if frame is not None else ""
    # From C++ the last step is a method of SymNode, from Python it is a bool() or a function.
    from_kernel = last is not None and last.f_code.co_filename == _SYM_NODE
    layout = any(part in asker for part in _LAYOUT) or "_hinted_eq" in passed
    return Question(
        fallback=fallback,
        required="expect_true" in passed,
        about_layout=layout or (from_kernel and fallback is not None),
        from_kernel=from_kernel,
    )


@contextmanager
def fake_tensors(env: RecordingShapeEnv) -> Generator[FakeTensorMode]:
    """In the block tensors are fake, over `env`; composite operators keep symbols symbols.

    `env` must not hold the mode, which holds `env`: with that cycle processes under torch 2.13
    ended in a corrupted heap.
    """
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    mode.cache_enabled = False  # it would answer for repeated sites
    # Some C++ compositions read plain sizes, which would make numbers of all symbols.
    with remembered(), enable_python_dispatcher(), _quiet(), mode:
        yield mode


@contextmanager
def _quiet() -> Generator[None]:
    """The block in which a fake kernel does not log what it refuses: that is reported."""
    said = logging.getLogger(FakeTensorMode.__module__)
    before, said.disabled = said.disabled, True
    try:
        yield
    finally:
        said.disabled = before


@contextmanager
def without_modes() -> Generator[None]:
    """The block in which torch runs for real."""
    with _disable_current_modes(), torch._C._DisablePythonDispatcher():
        yield


def expression(size: int | torch.SymInt) -> Expression:
    """The sympy expression behind a size."""
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def sizes_of(tensor: torch.Tensor) -> list[Expression]:
    """The sympy expressions behind the sizes of a tensor."""
    return [expression(size) for size in tensor.shape]


def require(condition: bool, message: str) -> None:
    """Ask a question whose denial raises, as a kernel would."""
    torch._check(condition, lambda: message)


def storage_key(tensor: torch.Tensor) -> tuple[int, object]:
    """What all views of one memory share, and the object that keeps the key from being reused.

    A sparse tensor has no one memory and shares nothing.
    """
    if tensor.layout is not torch.strided:
        return id(tensor), tensor
    storage = tensor.untyped_storage()
    return storage._cdata, storage


class Layout(NamedTuple):
    """What a fake kernel knows of a tensor; `key` compares, the rest is to make another one."""

    key: tuple[object, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def layout(tensor: torch.Tensor) -> Layout:
    """Sizes, strides and offset as expressions, and what else an operator may look at."""
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    offset = cast(int, tensor.storage_offset())
    key = (
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor.is_inference(),
        tuple(map(_raw, sizes)),
        tuple(map(_raw, strides)),
        _raw(offset),
    )
    return Layout(key, sizes, strides, offset)


def _raw(size: int | torch.SymInt) -> object:
    return size.node.expr if isinstance(size, torch.SymInt) else size


def laid_out(
    made: Layout, env: RecordingShapeEnv, mode: FakeTensorMode, over: torch.Tensor | None
) -> torch.Tensor:
    """A fake tensor of this layout, over the memory of another or over its own."""
    dtype, device = made.key[:2]
    with env.rebuilding(), in_kernel_invocation_manager(mode):
        empty = torch.empty_strided(
            made.sizes, made.strides, dtype=cast(torch.dtype, dtype), device="meta"
        )
        if over is not None:
            empty.set_(over.untyped_storage(), made.offset, made.sizes, made.strides)
    return FakeTensor(mode, empty, cast(torch.device, device))


def is_plain_fake(tensor: torch.Tensor) -> bool:
    """Whether a layout says all there is to know: a fake tensor without values or gradients."""
    if not isinstance(tensor, FakeTensor) or tensor.layout is not torch.strided:
        return False
    return tensor.constant is None and not tensor.requires_grad


def shared_operand(func: Operator) -> int | None:
    """What a result shares memory with: the first operand (0), nothing (-1), or it varies (None).

    Operators that change a shape in place, and those that draw random numbers, vary.
    """
    if torch.Tag.inplace_view in func.tags or torch.Tag.nondeterministic_seeded in func.tags:
        return None
    schema = func._schema
    shared = [number for number, one in enumerate(schema.arguments) if one.alias_info is not None]
    if not shared:
        return -1 if all(one.alias_info is None for one in schema.returns) else None
    return 0 if shared == [0] and len(schema.returns) == 1 else None


def written(
    func: Operator, args: Sequence[object], kwargs: Mapping[str, object]
) -> Iterator[torch.Tensor]:
    """The operands that the operator writes to, by its schema."""
    for place, one in enumerate(func._schema.arguments):
        if one.alias_info is not None and one.alias_info.is_write:
            yield from tensors(args[place] if place < len(args) else kwargs.get(one.name))


def is_kernel(func: Operator) -> bool:
    """Whether the dispatcher knows the operator; reads of metadata (`prim.device`) are none."""
    return torch._C._dispatch_has_kernel(func.name())


def is_composite(func: Operator) -> bool:
    """Whether the operator is only a composition of others, which inference mode leaves whole."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    # An operator with a kernel of its own may still have a composite one: it stays whole.
    name = func.name()
    return has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "CPU")


_BEYOND = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
    NotImplementedError,
)


def is_refusal(error: Exception) -> bool:
    """Whether the operator refused its operands; else fake tensors are unable to run it."""
    refusals = (RuntimeError, ValueError, IndexError, AssertionError)
    return isinstance(error, refusals) and not isinstance(error, _BEYOND)


_EXPECTED = (
    (ShapeEnv, "evaluate_expr", ("orig_expr", "hint", "fx_node", "fallback_value")),
    (ShapeEnv, "evaluate_sym_node", ("sym_node", "fallback_value")),
    (ShapeEnv, "guard_or_defer_runtime_assert", ("orig_expr", "msg", "fx_node")),
    (ShapeEnv, "create_symbol", ("val", "source", "dynamic_dim")),
    (ShapeEnv, "create_symintnode", ("sym", "hint")),
    (ShapeEnv, "create_unbacked_symint", ()),
    (ShapeEnv, "create_unbacked_symfloat", ()),
    (ShapeEnv, "create_unbacked_symbool", ()),
    (SymNode, "guard_bool", ()),
    (SymNode, "expect_true", ()),
    (FakeTensorMode, "dispatch", ()),
    (FakeTensor, "__new__", ("fake_mode", "elem", "device")),
    (torch.compiler, "set_stance", ()),
    (torch._C, "_DisablePythonDispatcher", ()),
    (torch._C, "_dispatch_has_kernel", ()),
    (torch._C, "_dispatch_has_kernel_for_dispatch_key", ()),
)


def check_surface() -> None:
    """Raises ShapecheckError that names what this torch no longer has."""
    missing: list[str] = []
    for owner, method, parameters in _EXPECTED:
        function = getattr(owner, method, None)
        if function is None:
            missing.append(f"{owner.__name__}.{method}")
            continue
        known = inspect.signature(function).parameters if parameters else {}
        missing += [
            f"{owner.__name__}.{method}({name}=)"
            for name in parameters
            if name not in known and "kwargs" not in known
        ]
    if missing:
        raise ShapecheckError(
            f"torch {torch.__version__} lacks {', '.join(missing)}, which tracing needs: {_REMEDY}"
        )
