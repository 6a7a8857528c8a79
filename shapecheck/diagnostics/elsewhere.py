"""What the codes mean that no rule of lint decides, and what to do about each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "SHP101": (
            "A shape string or an annotation could not be checked as it is written. Raised when "
            "the decorator runs; write what the error proposes (docs/contracts.md has every form)."
        ),
        "SHP102": (
            "An axis name is not in the vocabulary, so it would bind to anything. Raised when the "
            "decorator runs; correct the spelling, or call shapecheck.declare(name, owner=...)."
        ),
        "SHP103": (
            "A per-call name occurs once in the whole contract, so it checks nothing. Raised when "
            "the decorator runs; use it in a second tensor, or write the size that is meant."
        ),
        "SHP204": (
            "Two configs, or the sizes of the algorithm, cannot work together. Reported by "
            "`shapecheck pair` and Dims.from_configs; follow the remedy that comes with it."
        ),
        "SHP205": (
            "A value of another class crossed where the contract says a tensor or a carrier. "
            "Raised at a call; pass that class, or make the annotation Optional."
        ),
        "SHP206": (
            "An @invariant is false. Raised at a call under SHAPECHECK=full; its docstring, which "
            "the error shows, says what must hold."
        ),
        "SHP403": "Capture and replay compute one quantity differently. Reserved: nothing reports "
        "it yet.",
    }
)
