"""What a test asks of a trace: odd requests are refused, with what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from shapecheck.asked import refuse_no_values, refuse_sizes
from shapecheck.dims.parse import Axis, parse_shape
from shapecheck.errors import ShapecheckError
from shapecheck.spec import contract_of
from shapecheck.symbolic.hints import Setting
from shapecheck.symbolic.shape_env import expression

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

_MODELS = ("target", "draft")


def setting_of(given: object) -> Setting:
    """The setting of this name."""
    try:
        return Setting(given)  # pyright: ignore[reportArgumentType]  # what a test wrote
    except ValueError:
        raise ShapecheckError(
            f"trace(setting={given!r}): the setting is one of {', '.join(Setting)}; correct it"
        ) from None


def refuse_hints(hints: object) -> None:
    """ShapecheckError for hints that are no sizes by name."""
    refuse_no_values("trace", "hints", hints)
    if isinstance(hints, Mapping):
        refuse_sizes("trace(hints=...)", hints)  # pyright: ignore[reportUnknownArgumentType]


def axes_of(asked: str, shape: object) -> Sequence[Axis]:
    """The axes of a shape that is written as one text."""
    if not isinstance(shape, str):
        raise ShapecheckError(
            f"{asked}({shape!r}): write names of dims as one text, as in 'bs*topk draft_hidden'"
        )
    return parse_shape(shape).axes


def refuse_negative(shape: str, sizes: Sequence[int], recorder: Recorder) -> None:
    """ShapecheckError for a tensor of which an axis is less than nothing here."""
    numbers = [int(recorder.judge.value(expression(size))) for size in sizes]
    if any(number < 0 for number in numbers):
        raise ShapecheckError(
            f"tensor({shape!r}) has the sizes {numbers} here; give sizes that leave none below 0"
        )


def refuse_model(where: str, model: object, good: str = "'target' or 'draft'") -> None:
    """ShapecheckError for what is neither model."""
    if model not in _MODELS:
        raise ShapecheckError(f"{where} is no model's; write {good}")


def refuse_ids(shape: str, model: object, dtype: torch.dtype) -> None:
    """ShapecheckError for ids of no model, or of a dtype that holds none."""
    refuse_model(f"tensor({shape!r}, ids={model!r})", model)
    if dtype not in (torch.int64, torch.int32):
        raise ShapecheckError(
            f"tensor({shape!r}, {dtype}, ids={model!r}): ids are whole numbers; give torch.int64"
        )


def refuse_no_index(asked: str, given: object) -> None:
    """ShapecheckError for what has no values to declare, or none that count."""
    if not isinstance(given, torch.Tensor):
        raise ShapecheckError(f"{asked}({given!r}): it is no tensor; give one of this trace")
    if given.is_floating_point() or given.is_complex():
        raise ShapecheckError(
            f"{asked}: a tensor of {given.dtype} holds no ids; give one of whole numbers"
        )


def device_of(shape: str, device: object) -> torch.device:
    """The device of this name."""
    try:
        return torch.device(device)  # pyright: ignore[reportArgumentType]  # what a test wrote
    except (RuntimeError, TypeError) as error:
        said = str(error).partition("\n")[0]
        raise ShapecheckError(
            f"tensor({shape!r}, device={device!r}): {said}; give a device such as 'cpu'"
        ) from None


def refuse_no_source(root: object, target: object) -> None:
    """ShapecheckError for what is no folder, or no text that names something in it."""
    if not isinstance(root, str | Path) or not isinstance(target, str):
        raise ShapecheckError(
            f"load({root!r}, {target!r}): give a folder and 'package.module:Qualified.name'"
        )


def refuse_receiver(function: Callable[..., object], receiver: Sequence[object]) -> None:
    """ShapecheckError for a method without its object, or for an object that nothing takes."""
    contract = contract_of(function)
    if contract is None:
        return  # it is said that there is none
    takes = contract.receiver is not None and not inspect.ismethod(function)
    if takes and len(receiver) != 1:
        raise ShapecheckError(
            f"call({contract.where}): it is a method; give its object, t.call(Class.method, object)"
        )
    if receiver and not takes:
        raise ShapecheckError(
            f"call({contract.where}): it takes no object; give arguments by name, given={{...}}"
        )
