"""What breaks a promise: the size, rows or dtype put where a contract or a pack says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shapecheck.diagnostics.model import Certainty, Diagnostic, DimPair, Note, Span
from shapecheck.dims.expr import Poly
from shapecheck.rules.base import Verdicts
from shapecheck.rules.chain import chain, conditions, handed_over, origin, place, reasons
from shapecheck.static.contracts.promise import Case
from shapecheck.static.counts import one_batch, rows_conflict, units_of
from shapecheck.static.facts import Facts, Handover
from shapecheck.static.guards import single_branch
from shapecheck.static.symbols import SizePoly, owner_conflict
from shapecheck.static.values import Axis, Const, DType, Size, Tensor

OWNER = "owner"
ROWS = "rows"
DTYPE = "dtype"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One hand-over that no alternative of its promise allows; `axis` is the axis at fault."""

    handover: Handover
    kind: str
    found: Size | None
    found_text: str
    expected_text: str
    expected: SizePoly | None
    other_phase: str
    primary: Span


def breaches(facts: Facts, kind: str) -> Iterator[Breach]:
    """Every breach of a kind, one for each place and pair of names."""
    seen: set[tuple[Span, str, str]] = set()
    shared = {one for handover in facts.handovers.values() for one in _fitting(handover)}
    for handover in facts.handovers.values():
        found = _breach(handover)
        if found is None or found.kind != kind:
            continue
        if found.found is not None and _use(handover, found.found) in shared:
            continue
        key = (found.primary, found.found_text, found.expected_text)
        if key not in seen:
            seen.add(key)
            yield found


_Use = tuple[str, str, Span | None, SizePoly]


def _use(handover: Handover, size: Size) -> _Use:
    """Who sizes what from which read: one class, one function, one origin."""
    return handover.cell.partition(".")[0], handover.where, origin(size), size.poly


def _fitting(handover: Handover) -> Iterator[_Use]:
    """The uses that are as promised: a size that also fits is declared equal to the other one.

    `Vocabulary(hot=arange(n), cold=zeros(n))` with one `n` for two vocabularies says that they are
    one vocabulary there.
    """
    if not isinstance(handover.given, Tensor):
        return
    for case in handover.promise.in_phase(handover.phase):
        for mine, theirs in _axes(handover.given, case):
            if mine is not None and theirs is not None and mine.poly == theirs:
                yield _use(handover, mine)


def report(
    code: str, name: str, facts: Facts, verdicts: Verdicts, kind: str, *, other_phase: bool = False
) -> Iterator[Diagnostic]:
    """The findings for the breaches of a kind; their causes get no second finding."""
    for breach in breaches(facts, kind):
        if bool(breach.other_phase) is not other_phase:
            continue
        if breach.found is not None:
            verdicts.causes |= handed_over(breach.found)
            read = origin(breach.found)
            if read is not None:
                verdicts.causes.add(read)
        verdicts.causes |= {breach.primary, breach.handover.span}
        if breach.kind == OWNER:
            verdicts.fields.add(breach.handover.cell)
        yield _finding(code, name, breach)


def _breach(handover: Handover) -> Breach | None:
    given = handover.given
    cases = handover.promise.in_phase(handover.phase)
    single = single_branch(handover.guards)
    faults = [fault for case in cases if (fault := _fault(given, case, single)) is not None]
    if not faults or len(faults) < len(cases):
        return None
    kind, found, expected, expected_text = min(faults, key=lambda one: _distance(one[1], one[2]))
    if isinstance(found, DType):
        text, size, primary = found.name, None, handover.span
    else:
        text, size = _in_words(found.poly) if kind == ROWS else str(found.poly), found
        primary = _lead(found, handover.span, kind)
    return Breach(
        handover=handover,
        kind=kind,
        found=size,
        found_text=text,
        expected_text=expected_text,
        expected=expected,
        other_phase=_other_phase(handover, given),
        primary=primary,
    )


_WORDS = {
    "R": "bs",
    "N": "num_draft_tokens",
    "S": "num_steps",
    "K": "num_speculative_tokens",
    "topk": "topk",
}


def _in_words(poly: SizePoly) -> str:
    """A count in the words of contracts: `len(seq_lens)*spec_steps` is `bs*num_steps`."""
    units = units_of(poly)
    if units is None:
        return str(poly)
    words = {
        unit: Poly.symbol(replace(unit, name=_WORDS.get(unit.name, unit.name)))
        for unit in units.symbols()
    }
    return str(units.substitute(words))


def _lead(found: Size, span: Span, kind: str) -> Span:
    """The read of a model's size; of rows, the line that makes the tensor of so many."""
    if kind == ROWS:
        made = [step.span for step in found.trail if step.kind == "created"]
        return made[-1] if made and made[-1].path == span.path else span
    return place(found) or span


_Fault = tuple[str, Size | DType, SizePoly | None, str]


def _fault(given: Tensor | Size | Const, case: Case, single: bool) -> _Fault | None:
    """The first axis, or the dtype, that an alternative does not allow."""
    if isinstance(given, Tensor):
        for mine, theirs in _axes(given, case):
            kind = _conflict(mine, theirs, single)
            if kind and mine is not None and theirs is not None:
                return kind, mine, theirs, str(theirs)
        known = given.dtype
        if known is not None and known.name and case.dtype and known.name != case.dtype:
            return DTYPE, known, None, case.dtype
        return None
    size = given if isinstance(given, Size) else _literal(given)
    kind = _conflict(size, case.size, single)
    if kind and size is not None and case.size is not None:
        return kind, size, case.size, str(case.size)
    return None


def _literal(given: Const) -> Size | None:
    value = given.value
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return Size(Poly.constant(value))


def _axes(given: Tensor, case: Case) -> list[tuple[Axis, SizePoly | None]]:
    if case.axes is None:
        return []
    if given.dims is None:
        return [(given.last, case.axes[-1])] if case.axes else []
    if len(given.dims) != len(case.axes):
        return []
    return list(zip(given.dims, case.axes, strict=True))[::-1]


def _conflict(mine: Axis, theirs: SizePoly | None, single: bool) -> str:
    if mine is None or theirs is None:
        return ""
    if owner_conflict(mine.poly, theirs):
        return OWNER
    value = mine.poly.as_int()
    if value is not None and value > 0 and _exceeds(theirs, value):
        return ROWS
    return ROWS if rows_conflict(one_batch(mine.poly), theirs, single_branch=single) else ""


def _exceeds(poly: SizePoly, value: int) -> bool:
    """Whether a width is larger than a number whatever its names are: each is at least 1."""
    if not poly.symbols() or any(coefficient < 0 for _, coefficient in poly.terms):
        return False
    return poly.evaluate(lambda _: 1) > value


def _distance(found: Size | DType, expected: SizePoly | None) -> bool:
    """False for the alternative that is the same multiple of the other model's size."""
    if not isinstance(found, Size) or expected is None:
        return False
    factors = [sorted(factor for _, factor in poly.terms) for poly in (found.poly, expected)]
    return factors[0] != factors[1]


def _other_phase(handover: Handover, given: Tensor | Size | Const) -> str:
    """The phase whose alternative the value is exactly, when it is not the phase at hand."""
    if not handover.phase or isinstance(given, Const):
        return ""
    for case in handover.promise.cases:
        if case.phase in ("", handover.phase) or _fault(given, case, False) is not None:
            continue
        if isinstance(given, Tensor) and any(
            mine is not None and theirs is not None and mine.poly == theirs and mine.poly.symbols()
            for mine, theirs in _axes(given, case)
        ):
            return case.phase
    return ""


def _finding(code: str, name: str, breach: Breach) -> Diagnostic:
    handover, promise = breach.handover, breach.handover.promise
    phase = f" in phase {handover.phase}" if handover.phase else ""
    carried = f", what phase {breach.other_phase} carries" if breach.other_phase else ""
    polys = (breach.found.poly,) if breach.found is not None else ()
    steps = chain(breach.found) if breach.found is not None else ()
    notes = [
        *reasons(*polys),
        *conditions(handover.guards),
        *(step for step in steps if (step.label, step.span) != ("stored in", handover.span)),
        Note(label="put in", message=f"{handover.cell} ({handover.where})", span=handover.span),
        Note(
            label="promised",
            message=f"{promise.text}, says {promise.source.removeprefix('says ')}",
            span=promise.span,
        ),
        Note(
            label="settle it",
            message=f"make it {breach.expected_text}, or correct the contract",
        ),
    ]
    return Diagnostic(
        code=code,
        name=name,
        message=f"{handover.cell} gets {breach.found_text}{carried}, "
        f"the contract says {breach.expected_text}{phase}",
        certainty=Certainty.MAY if handover.guards else Certainty.MUST,
        primary=breach.primary,
        notes=tuple(notes),
        dims=DimPair(expected=breach.expected_text, found=breach.found_text),
        cell=handover.cell,
    )
