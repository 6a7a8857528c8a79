"""Ids and positions that cross a contract under trace: SHP305 and SHP307 for those of another axis.

Fake tensors have no values; what is known of them comes from the operators that made them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch

from shapecheck.diagnostics import Diagnostic
from shapecheck.dims.parse import Axis
from shapecheck.runtime.violation import finding
from shapecheck.spec import TensorSpec
from shapecheck.symbolic.binding import Held, Names
from shapecheck.symbolic.bounds import Bounds
from shapecheck.symbolic.domains import Domains, Ids
from shapecheck.symbolic.index_marks import Index
from shapecheck.symbolic.indices import Indices
from shapecheck.symbolic.recorder import Recorder
from shapecheck.symbolic.shape_env import expression

Report = Callable[[Diagnostic, torch.Tensor | None, frozenset[str]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Judges the values of tensors that are marked, and remembers what the marks say."""

    recorder: Recorder
    domains: Domains
    indices: Indices
    bounds: Bounds
    report: Report

    def judge(self, held: Held, names: Names) -> None:
        """The values are not known to be ids or positions of something else; say what they are."""
        spec, tensor = cast(TensorSpec, held.spec), cast(torch.Tensor, held.value)
        if spec.indexes is None or tensor.layout is not torch.strided:
            return  # of sparse values nothing is followed
        if spec.ids_of is not None:
            self._ids(held, spec.ids_of, tensor, names)
        if not any(expression(size) == 0 for size in tensor.shape):
            self._index(held, spec, spec.indexes, tensor, names)

    def _ids(self, held: Held, model: str, tensor: torch.Tensor, names: Names) -> None:
        wanted, tag = f"{model}_vocab", self.domains.of(tensor)
        if tag is None:
            tag = self.indices.ids(tensor)
            if tag is None or not self.domains.conflict(tag.name, wanted):
                self.domains.tag(tensor, Ids(wanted))
                return
        elif isinstance(tag, Ids) and not self.domains.conflict(tag.name, wanted):
            return
        diagnostic = finding(
            "SHP305",
            names,
            held.path,
            f"ids of {wanted} belong here, got {tag}",
            [
                f"{wanted} comes from {names.origin(wanted)}",
                "map ids between the vocabularies where they change hands",
            ],
        )
        found = frozenset({tag.name}) if isinstance(tag, Ids) else frozenset[str]()
        self.report(diagnostic, tensor, found | {wanted})

    def _index(
        self, held: Held, spec: TensorSpec, axis: Axis, tensor: torch.Tensor, names: Names
    ) -> None:
        """The values are not known to count along another axis, nor to reach beyond this one."""
        size = names.along(axis)
        if size is None:
            return
        where = f"{held.path} of {names.where}"
        wanted = Index(axis, size.expr, where, pad=spec.pad)
        other = self.indices.another(wanted, tensor, self.domains)
        if other is not None:
            self._refuse_index(held, wanted, f"got {other}", tensor, names, other)
            return
        known = self.indices.of(tensor)
        if known is None or known.axis == axis:
            self.indices.mark(tensor, known if known and known.by_contract else wanted)
        beyond = self.bounds.lookups.beyond(tensor, wanted.size, pad=spec.pad)
        if beyond is not None:
            reached, said = beyond
            text = self.recorder.judge.text(reached)
            batch = f" in a batch{said}" if said else ""
            got = f"got an index that reaches {text}{batch}"
            self._refuse_index(held, wanted, got, tensor, names)

    def _refuse_index(
        self,
        held: Held,
        wanted: Index,
        got: str,
        tensor: torch.Tensor,
        names: Names,
        found: Index | Ids | None = None,
    ) -> None:
        notes = [f"{name} comes from {names.origin(name)}" for name in sorted(wanted.names())]
        if isinstance(found, Index):
            notes.append(f"{found} since {found.where}")
        notes.append("hand over what counts along this axis, or allow the equality with its reason")
        diagnostic = finding("SHP307", names, held.path, f"{wanted} belong here, {got}", notes)
        met = frozenset({found.name}) if isinstance(found, Ids) else frozenset[str]()
        met |= found.names() if isinstance(found, Index) else met
        self.report(diagnostic, tensor, wanted.names() | met)
