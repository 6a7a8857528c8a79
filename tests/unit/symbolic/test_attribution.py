"""Which line is blamed: the traced code's own, and how it asked."""

from __future__ import annotations

import json
from pathlib import Path
from types import FrameType

import pytest
import torch

from shapecheck.symbolic.attribution import (
    NOWHERE,
    Site,
    current_site,
    is_traced_file,
    shown_path,
    user_frames,
)


def here() -> Site:
    return current_site()


ASKING = """
class Asks:
    def __eq__(self, other):
        self.site = current_site()
        return True
    __hash__ = None
    def __bool__(self):
        self.site = current_site()
        return True
"""


@pytest.fixture
def asks():
    """Asks from a frame that may not be blamed, as torch's do."""
    names = {"current_site": current_site}
    exec(compile(ASKING, "<tool>", "exec"), names)
    return names["Asks"]()


def test_the_innermost_user_line_is_blamed():
    site = here()
    assert site.line == here.__code__.co_firstlineno + 1
    assert site.function == "here"
    assert Path(site.file).name == "test_attribution.py"


def test_standard_library_frames_are_skipped():
    found: list[list[str]] = []

    def hook(value: dict[str, object]) -> None:
        names = map(_name, user_frames())
        found.append(list(names))

    json.loads("{}", object_hook=hook)
    assert found[0][:2] == ["hook", "test_standard_library_frames_are_skipped"]


def _name(frame: FrameType) -> str:
    return frame.f_code.co_name


def test_a_comparison_is_told_from_a_call(asks):
    compared = asks == 1
    assert compared
    assert asks.site.comparing
    bool(asks)
    assert not asks.site.comparing


def test_a_jump_is_a_comparison(asks):
    if asks:
        assert asks.site.comparing
    assert asks
    assert asks.site.comparing


def test_whose_files_may_be_blamed():
    assert is_traced_file(__file__)
    assert not is_traced_file(torch.__file__)
    assert not is_traced_file(json.__file__)
    assert not is_traced_file("<string>")
    assert not is_traced_file(here.__globals__["current_site"].__code__.co_filename)


def test_installed_packages_are_user_code_but_torch_is_not(tmp_path):
    folder = tmp_path / "site-packages" / "engine"
    assert is_traced_file(str(folder / "worker.py"))
    assert not is_traced_file(str(tmp_path / "site-packages" / "sympy" / "core.py"))
    assert shown_path(str(folder / "worker.py")) == "engine/worker.py"


def test_nowhere_is_a_place_too():
    assert str(NOWHERE.span()) == "<unknown>:1:1"
