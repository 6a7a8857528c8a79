"""The story of a size as notes: where it was read, handed over and stored, and why it is whose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shapecheck.diagnostics.model import Note, Span
from shapecheck.dims.expr import Poly
from shapecheck.static.guards import Guard
from shapecheck.static.symbols import SizePoly, Step
from shapecheck.static.values import Size

_LABELS = {
    "read": "read",
    "named": "read",
    "passed": "passed to",
    "stored": "stored in",
    "created": "creates",
}
_ORIGINS = ("read", "named")
_MAX_STEPS = 6


def origin(size: Size) -> Span | None:
    """The place of the config read, or of the tensor, that decided the size."""
    return next((step.span for step in size.trail if step.kind in _ORIGINS), None)


def stated(size: Size) -> Span | None:
    """The place of the contract or pack that says the size."""
    return next((step.span for step in size.trail if step.kind == "stated"), None)


def place(size: Size) -> Span | None:
    """The line to lead with: the read, or where the size that another file returned is used."""
    read = origin(size)
    if read is None:
        return None
    uses = [step.span for step in size.trail if step.kind in ("passed", "created")]
    return read if not uses or uses[0].path == read.path else uses[0]


def creation(size: Size) -> Span | None:
    """Where the tensor was made that the size is an axis of."""
    return next((step.span for step in reversed(size.trail) if step.kind == "created"), None)


def origin_text(size: Size) -> str:
    """The source text of that read."""
    return next((step.text for step in size.trail if step.kind in _ORIGINS), str(size.poly))


def counterpart(odd: Size, usual: Size) -> SizePoly:
    """What belongs in place of `odd`: the usual size, in the same multiple where only a name tells.

    `hidden_states` says whose output a tensor is, not from how many layers: against the target's,
    `3*draft_hidden` is to be `3*target_hidden`. A number that was read from a config is exact.
    """
    first = next((step for step in usual.trail if step.kind in _ORIGINS), None)
    if first is None or first.kind != "named":
        return usual.poly
    theirs = {symbol.name: symbol for symbol in usual.poly.symbols()}
    return odd.poly.substitute(
        {
            symbol: Poly.symbol(replace(symbol, owner=other.owner, owned=other.owned))
            for symbol in odd.poly.symbols()
            if (other := theirs.get(symbol.name)) is not None
        }
    )


def meets(odd: Size, usual: Size, owner: str) -> str:
    """What a note says of the usual size where the two meet."""
    fits = counterpart(odd, usual)
    if fits == usual.poly:
        return f"{usual.poly} here"
    return f"the {owner}'s here, in a multiple that its name does not say: {fits} fits"


def last_cell(size: Size) -> str:
    """The field that the size was stored in last, or the parameter it went through."""
    stored = [step.cell for step in size.trail if step.cell and step.kind == "stored"]
    passed = [step.cell for step in size.trail if step.cell]
    return stored[-1] if stored else passed[-1] if passed else ""


def passed_cells(size: Size) -> frozenset[str]:
    """Every parameter that the size went through."""
    return frozenset(step.cell for step in size.trail if step.kind == "passed" and step.cell)


def handed_over(size: Size) -> frozenset[Span]:
    """Every argument that the size was passed as."""
    return frozenset(step.span for step in size.trail if step.kind == "passed")


def chain(size: Size, lead: str = "") -> tuple[Note, ...]:
    """The steps of the size, in the order it took them, one note each."""
    steps = _distinct(size.trail)
    if len(steps) > _MAX_STEPS:
        steps = [steps[0], *steps[-(_MAX_STEPS - 1) :]]
    return tuple(
        Note(label=f"{lead}{_LABELS.get(step.kind, step.kind)}", message=step.text, span=step.span)
        for step in steps
    )


def _distinct(trail: Iterable[Step]) -> list[Step]:
    steps: list[Step] = []
    for step in trail:
        if not steps or (step.kind, step.text) != (steps[-1].kind, steps[-1].text):
            steps.append(step)
    return steps


def reasons(*polys: SizePoly) -> tuple[Note, ...]:
    """Why each owner that occurs is believed, once per owner."""
    notes: dict[str, Note] = {}
    for poly in polys:
        for symbol in sorted(poly.symbols(), key=str):
            owned = symbol.owned
            if owned is not None and owned.reason and owned.owner not in notes:
                notes[owned.owner] = Note(
                    label=f"why {owned.owner}", message=owned.reason, span=owned.span
                )
    return tuple(notes.values())


def conditions(guards: Iterable[Guard]) -> tuple[Note, ...]:
    """The guards as one note, the innermost three."""
    texts = list(dict.fromkeys(str(guard) for guard in guards))
    texts = [text for text in texts if len(text) <= 160][-3:]
    return (Note(label="when", message=" and ".join(texts)),) if texts else ()
