"""SHP901 in the middle of a run: what crashed where, as a diagnostic among the others."""

from __future__ import annotations

import traceback
from pathlib import Path

from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.model import Diagnostic, Note, Span


def internal_error(error: Exception, what: str, span: Span) -> Diagnostic:
    """The SHP901 diagnostic for an exception raised while a function or module was analysed."""
    frames = traceback.extract_tb(error.__traceback__)
    raised = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"
    text = (str(error).splitlines() or [""])[0][:200]
    return Diagnostic(
        code="SHP901",
        name=NAMES["SHP901"],
        message=f"the analysis of {what} crashed: {type(error).__name__}: {text}",
        primary=span,
        notes=(
            Note(label="raised in", message=raised),
            Note(
                label="settle it",
                message="report it as a bug; the rest of the run is not affected",
            ),
        ),
        cell=what,
    )
