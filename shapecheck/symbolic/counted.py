"""Ids and positions that cross a contract under trace: SHP305 and SHP307 for those of another axis.

Fake tensors have no values; what is known of them comes from the operators that made them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import torch

from shapecheck.diagnostics import Diagnostic, Note
from shapecheck.dims.parse import Axis
from shapecheck.runtime.violation import finding
from shapecheck.spec import TensorSpec
from shapecheck.symbolic.attribution import NOWHERE, current_site
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
        if spec.ids_of is not None and self._are_others(held, spec.ids_of, tensor, names):
            return
        if not any(expression(size) == 0 for size in tensor.shape):
            self._index(held, spec, spec.indexes, tensor, names)

    def _are_others(self, held: Held, model: str, tensor: torch.Tensor, names: Names) -> bool:
        """Whether the values are known to be ids of another vocabulary, which is reported."""
        wanted, tag = f"{model}_vocab", self.domains.of(tensor)
        if tag is None:
            tag = self.indices.ids(tensor)
            if tag is None or not self.domains.conflict(tag.name, wanted):
                said = f"{held.path} of {names.where}"
                self.domains.tag(tensor, Ids(wanted, said, current_site()))
                return False
        elif isinstance(tag, Ids) and not self.domains.conflict(tag.name, wanted):
            return False
        diagnostic = finding(
            "SHP305",
            names,
            held.path,
            f"ids of {wanted} belong here, got {tag}",
            [
                *(f"{name} comes from {names.origin(name)}" for name in (wanted, *_named(tag))),
                "map ids between the vocabularies where they change hands",
            ],
        )
        found = frozenset(_named(tag))
        self.report(_told(diagnostic, tag), tensor, found | {wanted})
        return True

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
        known = (*sorted(wanted.names()), *_named(found))
        notes = [f"{name} comes from {names.origin(name)}" for name in known]
        if isinstance(found, Index):
            notes.append(f"{found} since {found.where}")
        notes.append("hand over what counts along this axis, or allow the equality with its reason")
        diagnostic = finding("SHP307", names, held.path, f"{wanted} belong here, {got}", notes)
        met = found.names() if isinstance(found, Index) else frozenset(_named(found))
        self.report(_told(diagnostic, found), tensor, wanted.names() | met)


def _named(found: object) -> tuple[str, ...]:
    """The vocabulary, where ids were found."""
    return (found.name,) if isinstance(found, Ids) else ()


def _told(diagnostic: Diagnostic, found: object) -> Diagnostic:
    """The finding with the line that said what was found."""
    if not isinstance(found, Ids) or found.site is NOWHERE:
        return diagnostic
    label, site = found.origin()
    note = Note(label=label, message="made here", span=site.span())
    return replace(diagnostic, notes=(*diagnostic.notes, note))
