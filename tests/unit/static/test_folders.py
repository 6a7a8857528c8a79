"""A listing of each folder says which files there are, like asking for every path."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.static.folders import Folders


@pytest.mark.parametrize(
    ("shown", "held"),
    [
        ("a.py", True),
        ("inner/b.py", True),
        ("inner", False),
        ("inner.py", False),
        ("link.py", True),
        ("gone.py", False),
        ("linked/b.py", True),
        ("missing/b.py", False),
        ("a.py/b.py", False),
        ("inner/b.py/__init__.py", False),
        ("with\0zero.py", False),
        ("x" * 5_000 + "/b.py", False),
    ],
)
def test_a_file_is_held_where_one_is(shown: str, held: bool, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for file in ("a.py", "inner/b.py"):
        (tmp_path / file).write_text("")
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing.py")
    (tmp_path / "linked").symlink_to(tmp_path / "inner")
    assert Folders(tmp_path).holds_file(shown) is held


def test_a_folder_is_asked_once(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    assert not folders.holds_file("later.py")
    (tmp_path / "later.py").write_text("")
    assert not folders.holds_file("later.py")
    assert Folders(tmp_path).holds_file("later.py")
