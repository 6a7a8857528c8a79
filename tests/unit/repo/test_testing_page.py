"""docs/testing.md is one file of tests, and they pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .test_contract_pages import ROOT, blocks


@pytest.mark.parametrize("level", ["off", "full"])
def test_the_page_passes(tmp_path: Path, level: str) -> None:
    text = "\n\n".join(blocks((ROOT / "docs/testing.md").read_text(), "python"))
    (tmp_path / "test_worker.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_worker.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SHAPECHECK": level},
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
