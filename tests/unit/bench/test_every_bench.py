"""A bench that nobody ran for a while still fits the code it measures."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize("name", sorted(one.stem for one in BENCHES.glob("[a-z]*.py")))
def test_its_imports_hold(name: str) -> None:
    assert importlib.import_module(f"tests.bench.{name}").__doc__
