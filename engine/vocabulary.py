"""Axis names that are the engine's own, added to shapecheck's vocabulary on import."""

from shapecheck import declare

declare("draft_tail", owner="algorithm", meaning="draft slots of a whole draft loop: (S-1)*K")
