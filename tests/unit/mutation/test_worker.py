"""A mutant that never ends or never stops appending ends in the fork that runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ENDLESS = """
import json
import time
from tests.mutation import worker

def appends():
    held = []
    while True:
        held.append(bytearray(1 << 24))

def loops():
    while True:
        pass

worker._MEMORY_BYTES = 1 << 28
worker._LIMIT_CPU_S = 1
said = [worker.forked(one) for one in (appends, loops, lambda: "ends")]
worker._LIMIT_S = 0.5
print(json.dumps([*said, worker.forked(time.sleep, 60)]))
"""


def test_memory_and_time_of_a_mutant_are_bounded() -> None:
    run = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert json.loads(run.stdout) == ["MemoryError: ", "died", "ends", "timeout"]
