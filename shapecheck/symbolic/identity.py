"""What a finding is about, whatever the numbers of its run: two of one identity are one bug."""

from __future__ import annotations

from dataclasses import dataclass

from shapecheck.diagnostics import Span
from shapecheck.symbolic.evidence import Meeting

# Sizes that disagree, and a tensor of another rank or dtype, have a code for each way to be told.
_FAMILIES = {"SHP303": "SHP301", "SHP207": "SHP203", "SHP304": "SHP203"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`subject` says what crossed a contract, or what was said where no names met.

    `broad`: torch only said that the sizes disagree, and `names` are all that its operands have.
    """

    code: str
    place: Span
    names: frozenset[str]
    subject: str = ""
    broad: bool = False

    def is_same(self, other: Identity, numbers: frozenset[str]) -> bool:
        """Whether both are one bug; `numbers` are the names that had no symbol in either run."""
        if (self.code, self.place, self.subject) != (other.code, other.place, other.subject):
            return False
        mine, others = self.names - numbers, other.names - numbers
        if self.broad or other.broad:
            return mine <= others or others <= mine
        return mine == others


def identity_of(meeting: Meeting) -> Identity:
    """The identity of what an operation or a crossing needed."""
    code, names = meeting.code, meeting.names
    broken = meeting.broken
    if broken is not None:
        crossing = broken.crossing
        subject = f"{crossing.where}, {crossing.field}" if crossing else broken.message
        code = _FAMILIES.get(code, code)
    elif names:
        subject, code = "", _FAMILIES.get(code, code)
    else:  # what stands in brackets are the words of torch, with numbers in them
        subject = meeting.text.partition(" (")[0]
    return Identity(
        code=code,
        place=meeting.site.span(),
        names=names,
        subject=subject,
        broad=meeting.refused and meeting.sides is None,
    )
