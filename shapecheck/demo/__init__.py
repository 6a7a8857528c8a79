"""The three scenes of `shapecheck demo`, and what it lints where no index is reachable."""
