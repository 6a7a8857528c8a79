"""SHP304 dtype-owner: a buffer in one model's dtype is filled from the other model's tensor.

## What it does

Reports a copy or a concatenation where one tensor has the dtype of the draft's config and the
other the dtype of the target's.

## Why

`copy_` converts in silence and `cat` promotes: a float16 draft loses the range of a bfloat16
target, a quantised one its values. Nothing fails as long as both configs name one dtype.

## Instead

Take the dtype from the model that makes the tensor, as its width. Where a contract promises the
dtype of a field, cast what is written into it in words (`.to(...)`).

## How to silence

`# shapecheck: ignore[SHP304] reason` on the line that is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Span
from shapecheck.rules.base import Rule, Verdicts
from shapecheck.rules.chain import creation, last_cell
from shapecheck.static.facts import Facts, Meeting
from shapecheck.static.symbols import Step
from shapecheck.static.values import DType, Size, Tensor

BAD = """
import torch

def fill(draft_config, target_model, batch, rows: int, width: int):
    buffer = torch.zeros((rows, width), dtype=draft_config.dtype)  # error: SHP304
    buffer.copy_(target_model.forward(batch).hidden_states)
"""
GOOD = BAD.replace("draft_config", "target_config").replace("  # error: SHP304", "")


def check(facts: Facts, verdicts: Verdicts) -> Iterator[Diagnostic]:
    """One finding for each dtype read that meets the other owner's; wrong widths come first."""
    for meeting in facts.meetings.values():
        left, right = meeting.left.dtype, meeting.right.dtype
        if left is None or right is None or not left.owner or not right.owner:
            continue
        if left.owner == right.owner or meeting.span in verdicts.causes:
            continue
        odd = left if meeting.fills or _made(meeting.left) is not None else right
        usual = right if odd is left else left
        if _promise(odd) is not None and _promise(usual) is None:
            odd, usual = usual, odd  # a contract says what its tensor is
        place = next((step.span for step in odd.trail if step.kind == "read"), meeting.span)
        if {place, _made(meeting.left), _made(meeting.right)} & verdicts.causes:
            continue
        verdicts.causes.add(place)
        yield _finding(meeting, odd, usual, place)


def _made(tensor: Tensor) -> Span | None:
    sized = [axis for axis in tensor.dims or () if axis is not None]
    return next((span for axis in sized if (span := creation(axis)) is not None), None)


def _promise(dtype: DType) -> Step | None:
    """The annotation that says whose dtype it is."""
    return next((step for step in dtype.trail if step.kind == "stated"), None)


def _cell(dtype: DType) -> str:
    return next((step.cell for step in reversed(dtype.trail) if step.cell), "")


def _settle(odd: DType, usual: DType) -> str:
    """A dtype that a contract promises stays: what meets it is made in it, or cast."""
    if _promise(odd) is not None:
        return "cast in words where the two meet; what a contract promises stays as it is"
    taken = f"take the dtype from the {usual.owner}'s config"
    return f"{taken}, or cast in words" if _promise(usual) is not None else taken


def _finding(meeting: Meeting, odd: DType, usual: DType, place: Span) -> Diagnostic:
    tensor = meeting.right if odd is meeting.right.dtype else meeting.left
    sizes: list[Size] = [axis for axis in tensor.dims or () if axis is not None]
    cell = next((name for size in sizes if (name := last_cell(size))), "")
    cell = cell or (meeting.cell if tensor is meeting.left else _cell(odd))
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        message=f"{cell or 'a tensor'} has the {odd.owner}'s dtype and meets the "
        f"{usual.owner}'s in {meeting.operator} ({meeting.where})",
        certainty=Certainty.MAY,
        primary=place,
        notes=(
            Note(label="meets", message=f"the {usual.owner}'s tensor here", span=meeting.span),
            *(
                Note(label=f"why {one.owner}", message=f"{step.text} says so", span=step.span)
                for one in (odd, usual)
                if (step := _promise(one)) is not None
            ),
            Note(label="settle it", message=_settle(odd, usual)),
        ),
        dims=DimPair(expected=f"{usual.owner}_dtype", found=f"{odd.owner}_dtype"),
        cell=cell or meeting.where,
    )


RULE = Rule(
    code="SHP304",
    name="dtype-owner",
    since="0.1",
    page=__doc__ or "",
    bad=BAD,
    good=GOOD,
    check=check,
)
