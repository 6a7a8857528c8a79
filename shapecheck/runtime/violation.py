"""Builds the Diagnostic of a broken contract, without touching the tensor's data or device."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.model import Crossing, Diagnostic, DimPair, Note
from shapecheck.dims.parse import Axis
from shapecheck.dims.vocabulary import lookup
from shapecheck.runtime.reach import MODELS, Reach, owner_of, spec_text
from shapecheck.runtime.tensors import Facts, dtype_names
from shapecheck.spec.model import TensorSpec


def mismatch(
    reach: Reach,
    field: str,
    spec: TensorSpec,
    facts: Facts,
    alternatives: Sequence[tuple[str, TensorSpec]] = (),
) -> Diagnostic:
    """The finding for a tensor whose shape or dtype is not what its spec says."""
    other = next(
        (phase for phase, item in alternatives if not differences(reach, item, facts)), None
    )
    wrong = differences(reach, spec, facts)
    code = "SHP202" if other is not None else _code(reach, spec, facts, wrong)
    axes = [index for index in wrong if isinstance(index, int)]
    notes = [_expected(reach, spec, facts)]
    for index in axes:
        notes += _axis_notes(reach, spec.shape.axes[index], index, facts.shape[index])
    if "dtype" in wrong and dtype_names(spec, reach.dims):
        notes.append(f"dtype: {_dtype_reason(reach, spec)}, got {facts.dtype}")
    notes += _without_dims(reach, spec, axes)
    notes += process_note()
    notes.append(
        f"the shape and dtype are exactly those of phase {other}: this field was filled for it"
        if other is not None
        else _sentence(reach, spec, facts, wrong, code)
    )
    pair: DimPair | None = None
    if axes:
        axis, found = spec.shape.axes[axes[0]], facts.shape[axes[0]]
        pair = DimPair(expected=str(axis), found=(*reach.others(found, axis), str(found))[0])
    return finding(code, reach, field, _summary(reach, spec, facts, wrong, other), notes, dims=pair)


def finding(
    code: str,
    reach: Reach,
    field: str,
    summary: str,
    notes: Iterable[str],
    *,
    dims: DimPair | None = None,
) -> Diagnostic:
    """A Diagnostic of this boundary; its message is complete on its own."""
    phase = f" (phase {reach.phase})" if reach.phase else ""
    root = field.removeprefix("argument ").partition(".")[0].partition("[")[0]
    return Diagnostic(
        code=code,
        name=NAMES[code],
        message=f"{reach.where}{phase}, {field}: {summary}",
        crossing=Crossing(where=reach.where, field=field, phase=reach.phase),
        notes=tuple(Note(message=note) for note in notes),
        dims=dims,
        cell=f"{reach.where}({root})",
    )


def process_note() -> list[str]:
    """Which rank and process speaks, when torch.distributed is initialised."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return []
    rank, world = distributed.get_rank(), distributed.get_world_size()
    return [f"rank {rank} of {world}, process {os.getpid()}"]


def differences(reach: Reach, spec: TensorSpec, facts: Facts) -> list[int | str]:
    """Indices of wrong axes, "rank", "dtype": empty when the tensor is what the spec says."""
    wrong: list[int | str] = []
    if len(facts.shape) != len(spec.shape.axes):
        wrong.append("rank")
    else:
        for index, (axis, found) in enumerate(zip(spec.shape.axes, facts.shape, strict=True)):
            expected = reach.value(axis)
            if (expected is not None and expected != found) or (
                expected is None and not _solvable(reach, axis, found)
            ):
                wrong.append(index)
    allowed = dtype_names(spec, reach.dims)
    if allowed is not None and facts.dtype not in allowed:
        wrong.append("dtype")
    return wrong


def _solvable(reach: Reach, axis: Axis, found: int) -> bool:
    """Whether the unknown of an axis has a whole number that gives `found`."""
    rest, factor = found, 0
    for monomial, coefficient in axis.terms:
        unknown = [name for name in monomial if reach.number(name) is None]
        for name in monomial:
            coefficient *= reach.number(name) or (1 if name in unknown else 0)
        if unknown:
            factor += coefficient
        else:
            rest -= coefficient
    return rest == 0 if factor == 0 else rest % factor == 0 and rest // factor >= 0


def _code(reach: Reach, spec: TensorSpec, facts: Facts, wrong: Sequence[int | str]) -> str:
    only_kind = all(item in ("rank", "dtype") for item in wrong)
    if only_kind and facts.shape and facts.shape[0] == 0:
        return "SHP203"
    if list(wrong) == ["dtype"]:
        return "SHP304" if spec.dtype_of else "SHP207"
    return "SHP201"


def _expected(reach: Reach, spec: TensorSpec, facts: Facts) -> str:
    return f"expected {spec_text(reach, spec)}      got {facts}"


def _axis_notes(reach: Reach, axis: Axis, index: int, found: int) -> list[str]:
    expected = reach.value(axis)
    head = f"dim {index}: "
    first = f"{axis} is {expected}" if axis.as_int() is None else f"the contract says {axis}"
    if expected is None:
        first = f"{axis} has no whole solution for {found}"
    rows = [(first, _reason(reach, axis))]
    rows += [(f"{found} is {name}", reach.origin(name)) for name in reach.others(found, axis)]
    if len(rows) == 1:
        rows.append((f"{found} is no other size known here", ""))
    width = max(len(left) for left, right in rows if right) if any(r for _, r in rows) else 0
    lines = [f"{left:<{width}} ({right})" if right else left for left, right in rows]
    return [head + lines[0], *(" " * len(head) + line for line in lines[1:])]


def _reason(reach: Reach, axis: Axis) -> str:
    name = axis.as_symbol()
    if name is not None:
        return reach.origin(name)
    parts = [
        f"{part}={reach.number(part)}, {reach.origin(part)}" for part in sorted(axis.symbols())
    ]
    return "; ".join(parts)


def _dtype_reason(reach: Reach, spec: TensorSpec) -> str:
    allowed = dtype_names(spec, reach.dims) or ()
    if spec.dtype_of is not None and len(allowed) == 1:
        return f"the {spec.dtype_of}'s dtype is {allowed[0]}"
    return f"the contract says {spec.kind}"


def _without_dims(reach: Reach, spec: TensorSpec, axes: Sequence[int]) -> list[str]:
    names = sorted(
        name
        for index in axes
        for name in spec.shape.axes[index].symbols()
        if (found := lookup(name)) is not None and not found.per_call
    )
    if reach.dims is not None or not names:
        return []
    return [f"no Dims was in reach, so {', '.join(names)} was bound by this call alone"]


def _summary(
    reach: Reach,
    spec: TensorSpec,
    facts: Facts,
    wrong: Sequence[int | str],
    other: str | None,
) -> str:
    if other is not None:
        return f"expected {spec_text(reach, spec)}, got {facts}, which phase {other} carries"
    parts: list[str] = []
    for item in wrong:
        if item == "rank":
            parts.append(f"expected {spec_text(reach, spec)}, got rank {len(facts.shape)}: {facts}")
        elif item == "dtype":
            parts.append(f"{_dtype_reason(reach, spec)}, got {facts.dtype}")
        elif isinstance(item, int):
            axis, found = spec.shape.axes[item], facts.shape[item]
            names = ", ".join(reach.others(found, axis))
            expected = reach.value(axis)
            is_what = f"{axis} is {expected}" if expected is not None else f"{axis} has no solution"
            parts.append(f"dim {item} {is_what}, got {found}" + (f" ({names})" if names else ""))
    return "; ".join(parts)


def _sentence(
    reach: Reach, spec: TensorSpec, facts: Facts, wrong: Sequence[int | str], code: str
) -> str:
    if code == "SHP203":
        return (
            "an idle placeholder keeps the rank and dtype of the live tensor; only its rows are 0"
        )
    if "rank" in wrong:
        return (
            f"the contract has {len(spec.shape.axes)} axes, this tensor has {len(facts.shape)}: "
            "keep the rank where it is built, also for empty batches"
        )
    axes = [item for item in wrong if isinstance(item, int)]
    if not axes:
        return "convert it where it is made, so that the conversion is visible"
    axis, found = spec.shape.axes[axes[0]], facts.shape[axes[0]]
    boundary = f"the {reach.phase} phase" if reach.phase else "this boundary"
    wanted = [owner for name in sorted(axis.symbols()) if (owner := owner_of(name)) in MODELS]
    other = [owner for name in reach.others(found, axis) if (owner := owner_of(name)) in MODELS]
    if wanted and other and other[0] != wanted[0]:
        return (
            f"{boundary} carries the {wanted[0]}'s output; "
            f"this tensor was sized from the {other[0]}'s config"
        )
    if wanted and other:
        return f"both are sizes of the {wanted[0]}: another of its widths was taken for {axis}"
    if wanted:
        return f"{boundary} carries the {wanted[0]}'s {axis}: size this tensor from Dims"
    return f"every tensor of this call that says {axis} has the same number there"
