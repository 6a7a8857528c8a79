"""Models, their layers and the readers of their checkpoints."""
