"""Operators that run again on operands of the same shapes: asked again, but not worked out again.

A traced step repeats itself (layers, levels of a tree, turns), and a fake kernel takes most of a
trace's time to find the same result. What it asked is put to the recorder again, so that every
site has its own evidence; only the result is taken from the first time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch

from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.shape_env import (
    Layout,
    Operator,
    Question,
    RecordingShapeEnv,
    expression,
    is_plain_fake,
    laid_out,
    layout,
    shared_operand,
    storage_key,
)

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode

    from shapecheck.symbolic.expressions import Expression
    from shapecheck.symbolic.recorder import Recorder

_PLAIN = (
    int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format
)  # fmt: skip


class _Known(NamedTuple):
    """What an operator asked, and its results; None when it gives its first operand back."""

    asked: tuple[tuple[Expression, Question | None], ...]
    results: tuple[Layout, ...] | None
    several: bool


@dataclass(slots=True)
class Repeats:
    """The operators of one trace, by what their kernels know of their operands."""

    recorder: Recorder
    env: RecordingShapeEnv
    mode: FakeTensorMode
    _known: dict[object, _Known] = field(default_factory=dict[object, _Known])
    _shared: dict[Operator, int | None] = field(default_factory=dict[Operator, "int | None"])

    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """The result of the operator, with every question it asks put to the recorder."""
        key = self._key(func, args, kwargs)
        if key is None:
            return func(*args, **kwargs)
        known = self._known.get(key)
        if known is not None:
            return self._again(known, func, args)
        asked = self.recorder.asked = []
        result: object = func(*args, **kwargs)
        if self.recorder.asked is asked:
            self._keep(key, func, args, result)
        self.recorder.asked = None
        return result

    def _again(self, known: _Known, func: Operator, args: tuple[Any, ...]) -> object:
        for expr, question in known.asked:
            if question is None:
                self.recorder.number(expr)
            else:
                self.recorder.truth(expr, question)
        if known.results is None:
            return args[0]
        over = args[0] if self._shared[func] == 0 else None
        made = [laid_out(one, self.env, self.mode, over) for one in known.results]
        return made if known.several else made[0]

    def _keep(self, key: object, func: Operator, args: tuple[Any, ...], result: object) -> None:
        asked = tuple(dict.fromkeys(self.recorder.asked or ()))
        if args and result is args[0]:
            self._known[key] = _Known(asked, None, several=False)
            return
        several = isinstance(result, (list, tuple))
        parts: Sequence[object] = cast("Sequence[object]", result) if several else (result,)
        memory = args[0] if self._shared[func] == 0 else None
        if all(isinstance(part, torch.Tensor) and _is_over(part, memory, args) for part in parts):
            layouts = tuple(layout(cast(torch.Tensor, part)) for part in parts)
            self._known[key] = _Known(asked, layouts, several)

    def _key(
        self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[object, ...] | None:
        if func not in self._shared:
            self._shared[func] = shared_operand(func)
        if self._shared[func] is None:
            return None
        name = self.recorder.operation.name if self.recorder.operation is not None else ""
        parts: list[object] = [func, name, torch.is_inference_mode_enabled()]
        if _describe(args, parts) and _describe(tuple(kwargs.items()), parts):
            return tuple(parts)
        return None


def _is_over(part: torch.Tensor, memory: torch.Tensor | None, args: tuple[Any, ...]) -> bool:
    """Whether the result lies where `shared_operand` says, and a layout says all of it."""
    if not is_plain_fake(part):
        return False
    mine = storage_key(part)[0]
    if memory is not None:
        return mine == storage_key(memory)[0]
    return all(mine != storage_key(one)[0] for one in tensors(args))


def _describe(values: Sequence[object], parts: list[object]) -> bool:
    """Add what a kernel knows of the values to `parts`; False when there may be more to know."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if not is_plain_fake(value):
                return False
            parts.append(layout(value).key)
        elif isinstance(value, torch.SymInt):
            parts.append(expression(value))
        elif isinstance(value, _PLAIN):
            parts.append((type(value), value))
        elif isinstance(value, (tuple, list)):
            items = cast("Sequence[object]", value)
            parts.append(len(items))
            if not _describe(items, parts):
                return False
        else:
            return False
    return True
