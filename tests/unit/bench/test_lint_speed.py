"""The speed benchmark's own parts: what one process cost, and which limits were kept."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from tests.bench.lint_speed import Cost, reached, run


def cost(wall: float, *, memory: float = 100.0, status: int = 0) -> Cost:
    return Cost(wall=wall, processor=wall, memory=memory, status=status)


def test_a_process_is_charged_with_its_own_memory_and_status(tmp_path: Path) -> None:
    small = run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path, {})
    # A child starts with its parent's peak on the account, so it has to go beyond that.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    code = f"x = b'1' * {own + 200_000_000}"
    large = run([sys.executable, "-c", code], tmp_path, {})
    assert small.status == 3
    assert large.status == 0
    assert large.memory > small.memory + 100
    assert small.wall > 0


def test_the_environment_is_passed_on(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(0 if os.environ['SHAPECHECK_CACHE_DIR'] == 'x' else 1)"
    assert run([sys.executable, "-c", code], tmp_path, {"SHAPECHECK_CACHE_DIR": "x"}).status == 0


@pytest.mark.parametrize(
    ("cold", "warm", "kept"),
    [
        (cost(3.9), cost(1.4), {"ran", "cold", "warm", "memory"}),
        (cost(4.1), cost(1.4), {"ran", "warm", "memory"}),
        (cost(3.9), cost(1.6), {"ran", "cold", "memory"}),
        (cost(3.9, memory=801), cost(1.4), {"ran", "cold", "warm"}),
        (cost(3.9, status=2), cost(1.4), {"cold", "warm", "memory"}),
    ],
)
def test_each_limit_is_judged_for_itself(cold: Cost, warm: Cost, kept: set[str]) -> None:
    best = {
        "lint cold": cold,
        "lint warm": warm,
        "pyrefly cold": cost(2.0),
        "pyrefly warm": cost(2.0),
    }
    limits = reached("speculative", best)
    assert {name.split()[1] for name, yes in limits.items() if yes} == kept
