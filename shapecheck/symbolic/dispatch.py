"""The two modes around a trace: the call as the user wrote it, and every operator below it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from shapecheck.symbolic.bounds import Bounds
from shapecheck.symbolic.domains import Domains
from shapecheck.symbolic.dtypes import check_dtypes, follow_promotion
from shapecheck.symbolic.gaps import check_gaps
from shapecheck.symbolic.indices import Indices
from shapecheck.symbolic.kernels import Kernels
from shapecheck.symbolic.operands import leaves, sizes, tensors
from shapecheck.symbolic.recorder import Recorder
from shapecheck.symbolic.repeats import Repeats
from shapecheck.symbolic.requests import Requests
from shapecheck.symbolic.reshapes import check_reshape
from shapecheck.symbolic.shape_env import Operator, is_composite, is_kernel
from shapecheck.symbolic.stub import Stub, stub_name

# Reads of an attribute, and conversions whose answer is the user's own branch.
_NOT_CALLS = frozenset(
    {"__get__", "__set__", "__bool__", "__int__", "__float__", "__index__", "item", "tolist"}
)
Arguments = tuple[Any, ...]  # whatever the traced code passes to torch
Keywords = Mapping[str, Any]


class CallMode(TorchFunctionMode):
    """Names the torch call in progress, so that questions from C++ have operands too."""

    def __init__(self, recorder: Recorder, kernels: Kernels) -> None:
        super().__init__()
        self._recorder = recorder
        self._kernels = kernels

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Arguments = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        """Run the call between `begin` and `finish`."""
        # Random values are not drawn here, and their kernels know no symbols beside a generator.
        kwargs = {key: value for key, value in (kwargs or {}).items() if key != "generator"}
        name = getattr(func, "__name__", str(func))
        if name in _NOT_CALLS or self._recorder.operation is not None:
            return func(*args, **kwargs)
        stub = next((arg for arg in leaves((args, kwargs)) if isinstance(arg, Stub)), None)
        if stub is not None:
            self._recorder.evidence.stubbed_operations.add(f"{name} of {stub_name(stub)}")
            self._recorder.unseen.extend(tensors((args, kwargs)))
            return stub
        replacement = _replacement(name, args)
        if replacement is not None:
            self._recorder.unseen.append(args[0])
            return replacement
        return _recorded(self._recorder, self._kernels, name, func, args, kwargs)


class OperatorMode(TorchDispatchMode):
    """Checks of every operator what fake kernels leave unchecked: sizes, dtypes, id domains."""

    def __init__(
        self,
        recorder: Recorder,
        kernels: Kernels,
        domains: Domains,
        indices: Indices,
        bounds: Bounds,
        repeats: Repeats,
    ) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]  # torch leaves it untyped
        self._recorder = recorder
        self._domains = domains
        self._indices = indices
        self._bounds = bounds
        self._requests = Requests(recorder)
        self._kernels = kernels
        self._repeats = repeats

    def __torch_dispatch__(
        self,
        func: Operator,
        types: Iterable[type],
        args: Arguments = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        """Run the operator; composites are taken apart first, so that every part is seen."""
        kwargs = kwargs or {}
        if not is_kernel(func):
            return func(*args, **kwargs)
        if is_composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        if self._recorder.operation is None:
            name = func.overloadpacket.__name__
            return _recorded(self._recorder, self._kernels, name, self._run(func), args, kwargs)
        return self._run(func)(*args, **kwargs)

    def _run(self, func: Operator) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if func is torch.ops.aten.equal.default:
                return _equal(self._recorder, args)
            check_gaps(func, args, kwargs, self._recorder)
            check_dtypes(func, args, kwargs, self._recorder)
            result = self._repeats.run(func, args, kwargs)
            self._kernels.ask(func, args, kwargs, result)
            self._domains.follow(func, args, kwargs, result)
            self._indices.follow(func, args, kwargs, result)
            self._bounds.follow(func, args, kwargs, result)
            self._requests.follow(func, args, kwargs, result)
            check_reshape(func, args, result, self._recorder)
            follow_promotion(func, args, kwargs, result, self._recorder)
            return result

        return run


def _recorded(
    recorder: Recorder,
    kernels: Kernels,
    name: str,
    func: Callable[..., Any],
    args: Arguments,
    kwargs: Keywords,
) -> Any:
    given = (args, kwargs)
    operation = recorder.begin(name, tensors(given), sizes(given))
    try:
        result = func(*args, **kwargs)
    except Exception as error:
        try:
            recorder.denied(operation, error)
            kernels.ask_with_rows(func, args, kwargs, error)
            recorder.refused(operation, error)
            kernels.ask_again(func, args, kwargs, error)
        finally:
            recorder.operation = None
        raise
    recorder.finish(operation, tensors(result))
    return result


def _replacement(name: str, args: Arguments) -> object | None:
    # These read memory, which a fake tensor does not have.
    if name == "numpy":
        kind = str(args[0].dtype).removeprefix("torch.")
        return numpy.zeros([int(size) for size in args[0].shape], dtype=kind)
    if name == "pin_memory":
        return args[0].clone()
    if name == "__deepcopy__":
        return copy.copy(args[0].detach().clone())
    return None


def _equal(recorder: Recorder, args: Arguments) -> bool:
    left, right = args[0], args[1]
    same = left.dim() == right.dim() and all(
        bool(a == b) for a, b in zip(left.shape, right.shape, strict=True)
    )
    return same and recorder.branch()
