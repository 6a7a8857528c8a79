"""What the codes mean that no rule of lint decides, and what to do about each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
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
        "SHP307": (
            "Values that count along one axis stand where a contract says indexes(...) of another, "
            "or reach beyond it. Reported by trace, and at a call under SHAPECHECK=full; hand over "
            "positions along the axis that the marker names."
        ),
    }
)
