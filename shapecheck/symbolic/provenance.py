"""Where a tensor's dimensions came from: a small record on the tensor itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import torch

from shapecheck.symbolic.attribution import Site
from shapecheck.symbolic.shape_env import expression

if TYPE_CHECKING:
    from shapecheck.symbolic.expressions import Judge
    from shapecheck.symbolic.recorder import Recorder

# An attribute, because weak maps compare tensors by value; it dies with the tensor.
_RECORD = "_shapecheck_provenance"
_SHOWN_OPERANDS = 4
# The code and the names of a finding.
Cause = tuple[str, frozenset[str]]


@dataclass(slots=True)
class Provenance:
    """For each dimension of the shape, the line that brought it in."""

    born: Site
    operation: str
    made: dict[str, Site] = field(default_factory=dict[str, Site])
    taints: set[object] = field(default_factory=set[object])


def provenance(tensor: torch.Tensor) -> Provenance | None:
    """The record of a traced tensor."""
    return getattr(tensor, _RECORD, None)


def made_at(
    tensor: torch.Tensor,
    names: Iterable[str],
    site: Site,
    operation: str,
    operands: Iterable[torch.Tensor],
) -> None:
    """Record `tensor` as made at `site`; a dimension that an operand had keeps its own origin."""
    record = provenance(tensor)
    if record is None:
        record = Provenance(born=site, operation=operation)
        setattr(tensor, _RECORD, record)
    sources = [source for operand in operands if (source := provenance(operand)) is not None]
    for name in names:
        if name in record.made:
            continue
        inherited = [source.made[name] for source in sources if name in source.made]
        record.made[name] = inherited[0] if inherited else site


def birthplace(tensor: torch.Tensor) -> Site | None:
    """The line whose operation made the tensor."""
    record = provenance(tensor)
    return record.born if record is not None else None


def taint(tensor: torch.Tensor, causes: Iterable[object]) -> None:
    """Mark a result: later findings of one of these causes are consequences."""
    record = provenance(tensor)
    if record is not None:
        record.taints.update(causes)


def consequences(code: str, names: frozenset[str]) -> Iterable[Cause]:
    """What later findings on a tensor that broke a contract may be and say nothing new."""
    if not names:
        return [(code, names), ("SHP203", names), ("SHP304", names)]
    return [(kind, names) for kind in (code, "SHP301", "SHP303", "SHP305")]


def is_cause(cause: object, code: str, names: frozenset[str]) -> bool:
    """Whether an earlier finding explains one of a contract: the same names met before."""
    kind, met = cast(Cause, cause)
    return met == names if names else kind == code


def taints(operands: Iterable[torch.Tensor]) -> frozenset[object]:
    """The causes that the operands carry from earlier findings."""
    records = (provenance(operand) for operand in operands)
    return frozenset[object]().union(*(record.taints for record in records if record))


def shape_text(tensor: torch.Tensor, judge: Judge) -> str:
    """The shape in the names of dimensions, as `[bs, draft_hidden]`."""
    sizes = (judge.text(expression(size)) for size in tensor.shape)
    return f"[{', '.join(sizes)}]"


def describe(
    operation: str,
    operands: Iterable[torch.Tensor],
    names: frozenset[str],
    recorder: Recorder,
) -> tuple[str, tuple[tuple[str, Site], ...]]:
    """`cat of [bs, draft_hidden] made at a.py:9 and ...`, and the line each name came from."""
    shown: list[str] = []
    origins: dict[str, Site] = {}
    for operand in operands:
        here = sorted(recorder.names(operand) & names)
        if not here:
            continue
        made = provenance(operand)
        sites = {name: made.made[name] for name in here if name in made.made} if made else {}
        for name, site in sites.items():
            origins.setdefault(name, site)
        lines = ", ".join(dict.fromkeys(str(site) for site in sites.values()))
        shown.append(recorder.shape(operand) + (f" made at {lines}" if lines else ""))
    listed = " and ".join(shown[:_SHOWN_OPERANDS])
    return (f"{operation} of {listed}" if listed else operation), tuple(origins.items())
