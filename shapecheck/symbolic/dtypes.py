"""dtype owners: in a trace the target computes in one 16-bit type and the draft in the other.

A cast that the code writes is its decision; a cast that an operator makes in silence is a finding
(SHP304): of one model's dtype to the other's, or, within one model, of a narrower float to a wider
one that the code computes on with. So are two ranks or integer widths that `cat` joins in silence
(SHP203).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

from shapecheck.symbolic.evidence import Meeting
from shapecheck.symbolic.operands import tensors
from shapecheck.symbolic.provenance import provenance
from shapecheck.symbolic.shape_env import Operator

if TYPE_CHECKING:
    from shapecheck.symbolic.recorder import Recorder

# Whatever the real pair has: equal dtypes would hide a missing cast.
TARGET_DTYPE = torch.bfloat16
DRAFT_DTYPE = torch.float16
_OWNER = {TARGET_DTYPE: "target", DRAFT_DTYPE: "draft"}
_CASTS = (torch.ops.aten._to_copy.default, torch.ops.aten.to.dtype)
_aten = torch.ops.aten
# On a tensor, because weak maps compare tensors by value: the meeting that widened it.
_WIDENED = "_shapecheck_widened"
# Their results are no floats.
_COMPARISONS = frozenset[object](
    {_aten.eq, _aten.ne, _aten.lt, _aten.le, _aten.gt, _aten.ge, _aten.isclose}
)


def check_dtypes(
    func: Operator,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    recorder: Recorder,
) -> None:
    """Record operands of both owners' dtypes, and what a `cat` promotes or drops."""
    if func in _CASTS:
        return
    operands = [tensor for tensor in tensors((args, kwargs)) if tensor.dim() > 0]
    owners = {_OWNER[tensor.dtype] for tensor in operands if tensor.dtype in _OWNER}
    if len(owners) == 2:
        _add(recorder, "SHP304", "target dtype meets draft dtype", func, operands)
    elif func is torch.ops.aten.cat.default:
        _check_cat(func, operands, recorder)


def follow_promotion(
    func: Operator,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    result: object,
    recorder: Recorder,
) -> None:
    """Keep the float that an operator widened in silence; what computes on with it is a finding.

    A widened float that is cast at once is meant: the code says in which dtype it goes on.
    """
    operands = [tensor for tensor in tensors((args, kwargs)) if tensor.dim() > 0]
    widened = [made for one in operands if (made := getattr(one, _WIDENED, None)) is not None]
    if func.is_view:
        for tensor in tensors(result) if widened else ():
            setattr(tensor, _WIDENED, widened[0])
        return
    if func not in _CASTS:
        for meeting in widened:
            recorder.add(meeting)
    operation = recorder.operation
    if operation is None or not _is_pointwise(operation.name):
        return  # a composite may widen inside, as attention does for its softmax
    if torch.Tag.pointwise not in func.tags or func.overloadpacket in _COMPARISONS:
        return
    # A condition or a count beside floats is meant; two widths of float are an omitted cast.
    floats = [tensor for tensor in operands if tensor.is_floating_point()]
    kinds = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in floats})
    if len(kinds) > 1:
        text = f"{' meets '.join(kinds)}, and the operator promotes without a word"
        meeting = _meeting(recorder, "SHP304", text, func, floats)
        for tensor in tensors(result) if meeting is not None else ():
            setattr(tensor, _WIDENED, meeting)


@lru_cache(maxsize=512)
def _is_pointwise(call: str) -> bool:
    """Whether the call as the user wrote it (`__rmul__`, `add_`, `where`) is elementwise itself."""
    name = call.strip("_").replace("truediv", "div")
    packets = (getattr(_aten, one, None) for one in (name, name[1:]))
    return any(
        torch.Tag.pointwise in getattr(packet, overload).tags
        for packet in packets
        if packet is not None
        for overload in packet.overloads()
    )


def _check_cat(func: Operator, operands: list[torch.Tensor], recorder: Recorder) -> None:
    # `torch.tensor([])` is how code says "nothing yet"; cat is meant to drop it.
    operands = [tensor for tensor in operands if not _is_nothing_yet(tensor)]
    ranks = sorted({tensor.dim() for tensor in operands})
    if len(ranks) > 1:
        text = f"rank {ranks[0]} is joined to rank {ranks[-1]}; cat drops an empty 1-D tensor"
        _add(recorder, "SHP203", text, func, operands)
    kinds = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in operands})
    if len(kinds) > 1:
        text = f"{' and '.join(kinds)} are joined; cat promotes without a word"
        _add(recorder, "SHP203", text, func, operands)


def _is_nothing_yet(tensor: torch.Tensor) -> bool:
    made = provenance(tensor)
    return tensor.shape == (0,) and made is not None and made.operation == "tensor"


def _add(
    recorder: Recorder,
    code: str,
    text: str,
    func: Operator,
    operands: list[torch.Tensor],
) -> None:
    meeting = _meeting(recorder, code, text, func, operands)
    if meeting is not None:
        recorder.add(meeting)


def _meeting(
    recorder: Recorder,
    code: str,
    text: str,
    func: Operator,
    operands: list[torch.Tensor],
) -> Meeting | None:
    operation = recorder.operation
    if operation is None:
        return None
    shown = " and ".join(
        f"{str(tensor.dtype).removeprefix('torch.')}{recorder.shape(tensor)}"
        for tensor in operands[:4]
    )
    return Meeting(
        code=code,
        text=text,
        names=frozenset(),
        site=operation.site,
        operation=f"{func.overloadpacket.__name__} of {shown}",
        origins=recorder.origins(operands),
    )
