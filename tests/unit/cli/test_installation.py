"""A foreign distribution named `shapecheck` is noticed when it owns our import package."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.cli import main
from shapecheck.cli.installation import foreign_distribution


def install(site: Path, *, name: str, files: list[str]) -> None:
    info = site / f"{name}-0.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.9\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_no_clash() -> None:
    assert foreign_distribution() == ""


@pytest.mark.parametrize(
    ("name", "files", "clashes"),
    [
        ("shapecheck", ["shapecheck/__init__.py", "shapecheck/core.py"], True),
        ("shapecheck", ["shapecheck.py"], True),
        ("shapecheck", ["elsewhere/__init__.py"], False),
        ("torch_shapecheck", ["shapecheck/__init__.py"], False),
    ],
)
def test_clash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: list[str], clashes: bool
) -> None:
    install(tmp_path, name=name, files=files)
    monkeypatch.syspath_prepend(tmp_path)
    message = foreign_distribution()
    assert bool(message) is clashes
    assert clashes is ("pip install --force-reinstall --no-deps torch-shapecheck" in message)


def test_the_command_line_stops_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, name="shapecheck", files=["shapecheck/__init__.py"])
    monkeypatch.syspath_prepend(tmp_path)
    assert main.main(["--version"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "shapecheck 0.9 is installed" in captured.err
    assert "pip uninstall shapecheck" in captured.err
