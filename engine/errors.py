"""What the engine's user can fix: every text ends in what to do."""

from __future__ import annotations

from shapecheck.errors import ShapecheckError


class EngineError(ShapecheckError):
    """A setting, a request or a file the engine cannot work with."""


class CheckpointError(EngineError):
    """A checkpoint that does not hold what its config promises, by file, tensor and dimension."""


class OutOfSlots(EngineError):
    """The KV pool has fewer free slots than were asked for; the scheduler answers by preempting."""
