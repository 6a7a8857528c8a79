"""What generated code calls when a check fails: each call ends in a ShapeContractError."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, cast

from shapecheck.diagnostics.model import Diagnostic
from shapecheck.dims.model import Dims
from shapecheck.dims.parse import Axis
from shapecheck.errors import ShapeContractError
from shapecheck.runtime.reach import Reach, spec_text
from shapecheck.runtime.stats import Tally
from shapecheck.runtime.tensors import class_name, facts_of
from shapecheck.runtime.violation import finding, mismatch, process_note
from shapecheck.spec.model import TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger("shapecheck")
# pytest then ends its traceback at the call that crossed, without the repr of a tensor.
__tracebackhide__ = True
# Elements of a list are one site.
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One place of a contract: its path, with `{}` for each list index, and what belongs there."""

    path: str
    spec: TensorSpec | None = None
    wanted: str = ""
    alternatives: tuple[tuple[str, TensorSpec], ...] = ()


@dataclass(slots=True, eq=False, kw_only=True)
class Reporter:
    """Turns a failed check of one plan into its error, and counts it."""

    where: str
    phase: str | None
    dims: Dims | None
    tally: Tally
    sites: list[Site] = field(default_factory=list[Site])
    binders: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])

    def site(self, site: Site) -> int:
        """The number that generated code passes for this site."""
        self.sites.append(site)
        return len(self.sites) - 1

    def tensor(
        self, number: int, tensor: Tensor, bound: Mapping[str, object], at: tuple[int, ...]
    ) -> NoReturn:
        """A tensor whose shape or dtype is wrong."""
        site = self.sites[number]
        spec = cast(TensorSpec, site.spec)
        reach, allowed = self._reach(bound, site.path), bound.get(f"{spec.dtype_of} dtype")
        if allowed is not None:
            spec = replace(spec, dtypes=(str(allowed).removeprefix("torch."),))
        facts = facts_of(tensor)
        raise self._error(mismatch(reach, site.path.format(*at), spec, facts, site.alternatives))

    def value(
        self, number: int, value: object, bound: Mapping[str, object], at: tuple[int, ...]
    ) -> NoReturn:
        """A value of another class: never shown by its repr."""
        site = self.sites[number]
        reach = self._reach(bound)
        wanted = site.wanted
        if site.spec is not None:
            cls = site.spec.cls.__name__
            wanted = spec_text(reach, site.spec) + (f" in a {cls}" if cls != "Tensor" else "")
        got = class_name(value)
        if isinstance(value, tuple) and wanted.startswith("a tuple of"):
            got = f"a tuple of {len(cast('tuple[object, ...]', value))}"
        raise self._error(
            finding(
                "SHP205",
                reach,
                site.path.format(*at),
                f"expected {wanted}, got {got}",
                [
                    f"expected {wanted}      got {got}",
                    *process_note(),
                    "annotate `| None` if it may be missing"
                    if value is None
                    else "pass what the annotation says, or change the annotation",
                ],
            )
        ) from None

    def unset(
        self, number: int, value: object, bound: Mapping[str, object], at: tuple[int, ...]
    ) -> NoReturn:
        """A carrier that lacks one of its fields."""
        site = self.sites[number]
        name = next(name for name in site.wanted.split(", ") if not hasattr(value, name))
        raise self._error(
            finding(
                "SHP205",
                self._reach(bound),
                f"{site.path.format(*at)}.{name}",
                "the field was never set",
                [
                    f"expected a value      got a {class_name(value)} without this field",
                    *process_note(),
                    "set every field before the carrier crosses; one that may be missing is None",
                ],
            )
        ) from None

    def absent(
        self, number: int, value: object, bound: Mapping[str, object], at: tuple[int, ...]
    ) -> NoReturn:
        """A value where this pair has no such tensor at all."""
        site = self.sites[number]
        reach = self._reach(bound)
        names = sorted(site.spec.shape.names()) if site.spec is not None else []
        missing = [name for name in names if self.dims is not None and name in self.dims]
        missing = [name for name in missing if reach.number(name) is None]
        got = str(facts_of(cast("Tensor", value))) if hasattr(value, "dtype") else class_name(value)
        raise self._error(
            finding(
                "SHP201",
                reach,
                site.path.format(*at),
                f"expected None, since {missing[0]} has no number here, got {got}",
                [
                    f"expected None      got {got}",
                    *(f"{name} has no number ({reach.origin(name)})" for name in missing),
                    *process_note(),
                    "this pair carries no such tensor: leave the field None",
                ],
            )
        )

    def relation(
        self, path: str, code: str, summary: str, notes: Sequence[str], bound: Mapping[str, object]
    ) -> NoReturn:
        """Values that break a relation: ids outside a vocabulary, a false invariant."""
        reach = self._reach(bound)
        raise self._error(
            finding(code, reach, path, summary, [*notes[:-1], *process_note(), notes[-1]])
        )

    def origins(self, axis: Axis, bound: Mapping[str, object]) -> list[str]:
        """Where the numbers of an axis come from, a note for each name."""
        reach = self._reach(bound)
        names = sorted(axis.symbols())
        return [f"{name} is {reach.number(name)} ({reach.origin(name)})" for name in names]

    def log(self, error: ShapeContractError) -> None:
        """One record per site and code at level warn; the rest is counted."""
        diagnostic = error.diagnostic
        field = diagnostic.crossing.field if diagnostic.crossing else diagnostic.cell
        key = (_INDEX.sub("[]", field), diagnostic.code)
        if key not in self.tally.seen:
            self.tally.seen.add(key)
            log.warning("%s", error, extra={"diagnostic": diagnostic})

    def _reach(self, bound: Mapping[str, object], path: str = "") -> Reach:
        numbers = {
            name: cast(int, number)
            for name, number in bound.items()
            if number is not None and not name.endswith(" dtype")
        }
        return Reach(
            where=self.where,
            phase=self.phase,
            dims=self.dims,
            bound=numbers,
            binders={name: _before(places, path) for name, places in self.binders.items()},
        )

    def _error(self, diagnostic: Diagnostic) -> ShapeContractError:
        self.tally.violations[diagnostic.code] += 1
        return ShapeContractError(diagnostic)


def shown(path: str) -> str:
    """The path of a site, with no index of a list chosen."""
    return path.replace("{}", "…")


def _before(places: Sequence[str], path: str) -> Sequence[str]:
    """The places that come before `path`, where it is one of them: no field binds for itself."""
    own = shown(path)
    return places[: places.index(own)] or places if own in places else places
