"""What the engine's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.fetch import SMOLLM2, fetch


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The real model's file, fetched once into the user's cache; tests using it are `network`."""
    return fetch(SMOLLM2)
