"""Diagnostics are data: one object from every tier, rendered last."""

from shapecheck.diagnostics.model import (
    Certainty,
    Crossing,
    Diagnostic,
    DimPair,
    Note,
    Severity,
    Span,
)

__all__ = ["Certainty", "Crossing", "Diagnostic", "DimPair", "Note", "Severity", "Span"]
