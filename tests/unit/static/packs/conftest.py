"""A pack written to disk from texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

WritePack = Callable[..., Path]


@pytest.fixture
def write_pack(tmp_path: Path) -> WritePack:
    def write(
        stub: str = "", manifest: str = 'package = "engine"\n', *, name: str = "pack"
    ) -> Path:
        folder = tmp_path / name
        (folder / "engine").mkdir(parents=True)
        (folder / "pack.toml").write_text(manifest, encoding="utf-8")
        (folder / "engine" / "worker.pyi").write_text(stub, encoding="utf-8")
        return folder

    return write
