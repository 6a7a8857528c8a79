"""What the engine's user can fix: every text ends in what to do."""

from __future__ import annotations

from typing import Self

from shapecheck.diagnostics.codes import NAMES
from shapecheck.diagnostics.model import Diagnostic, DimPair
from shapecheck.errors import ShapecheckError, ShapeContractError


class EngineError(ShapecheckError):
    """A setting, a request or a file the engine cannot work with."""


class CheckpointError(EngineError):
    """A checkpoint that does not hold what its config promises, by file, tensor and dimension."""


class ContractError(EngineError, ShapeContractError):
    """A broken contract that the engine finds by itself, at every level, contracts off included."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        ShapecheckError.__init__(self, diagnostic.message, diagnostic=diagnostic)

    @classmethod
    def of(cls, message: str, *, expected: object, found: object, code: str = "SHP201") -> Self:
        """The error of a message that names what belongs there, what is, and what to do."""
        pair = DimPair(expected=str(expected), found=str(found))
        return cls(Diagnostic(code=code, name=NAMES[code], message=message, dims=pair))


class SizeError(ContractError):
    """Two sizes that must be equal, or fit one another, do not."""


class LawError(ContractError):
    """A draft law that no sampler made."""


class WidthError(CheckpointError, SizeError):
    """A config, a weight or the other model's config has another width than it must have."""


class OutOfSlots(EngineError):
    """The KV pool has fewer free slots than were asked for; the scheduler answers by preempting."""
