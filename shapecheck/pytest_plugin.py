"""`pytest --shapecheck=strict`, set before any test module is imported; the fixture `traced`."""

from __future__ import annotations

import pytest

from shapecheck.config import Level, settings, use
from shapecheck.fixture import traced

__all__ = ["pytest_addoption", "pytest_load_initial_conftests", "pytest_report_header", "traced"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--shapecheck`."""
    parser.getgroup("shapecheck").addoption(
        "--shapecheck",
        choices=[str(level) for level in Level],
        default=None,
        help="level at which contracts are enforced (default: the SHAPECHECK variable, or off)",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Set the level before the first conftest, which may import decorated modules."""
    level = getattr(early_config.known_args_namespace, "shapecheck", None)
    if level is not None:
        use(Level(level))


def pytest_report_header() -> str:
    """Say at which level the tests run."""
    return f"shapecheck: {settings().level}"
