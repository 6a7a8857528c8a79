"""A miniature draft/verify worker under contracts, and the three scenes of `shapecheck demo`."""
