"""The errors a user can fix: each carries a Diagnostic and says what to do."""

from __future__ import annotations

from shapecheck.diagnostics.model import Diagnostic


class ShapecheckError(ValueError):
    """Something the user can fix; the text ends in how."""

    def __init__(self, message: str, *, diagnostic: Diagnostic | None = None) -> None:
        super().__init__(message)
        self.diagnostic = diagnostic


class ContractTextError(ShapecheckError):
    """A contract is malformed (SHP1xx): raised at decoration, or at the first call where that hangs
    on names or a class that were not complete.
    """


class ShapeContractError(ShapecheckError, TypeError):
    """A tensor broke a contract at a boundary; `str(error)` is the whole rendering."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        # Late import: rendering is only needed once something is wrong.
        from shapecheck.diagnostics.full import render_full

        super().__init__(render_full(diagnostic), diagnostic=diagnostic)
        self.diagnostic: Diagnostic = diagnostic

    def __reduce__(self) -> tuple[type[ShapeContractError], tuple[Diagnostic]]:
        return type(self), (self.diagnostic,)
