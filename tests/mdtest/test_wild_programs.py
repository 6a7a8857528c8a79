"""The wild programs show what they are said to show: with torch, the bug fails and the fix runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mdtest.conftest import Case, read_cases
from tests.mdtest.drivers import DRIVERS

FAULTS = (RuntimeError, IndexError, ValueError, AssertionError)


@pytest.fixture
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Imports below see the programs only, and leave nothing behind: one is called `engine`."""
    before = dict(sys.modules)
    yield monkeypatch
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]
    sys.modules.update(before)


def load(case: Case, folder: Path, patch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of a program by their last name."""
    packages = {path.split("/")[0] for path in case.files}
    for path, text in case.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(text, encoding="utf-8")
    for name in [name for name in sys.modules if name.split(".")[0] in packages]:
        del sys.modules[name]
    patch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    names = [path.removesuffix(".py").replace("/", ".") for path in case.files]
    return SimpleNamespace(**{one.split(".")[-1]: importlib.import_module(one) for one in names})


def test_the_bug_fails_and_the_fix_runs(
    wild_document: Path, tmp_path: Path, own_modules: pytest.MonkeyPatch
) -> None:
    bug, fix = read_cases(wild_document)
    drive = DRIVERS[wild_document.stem]
    with pytest.raises(FAULTS):
        drive(load(bug, tmp_path / "bug", own_modules))
    drive(load(fix, tmp_path / "fix", own_modules))
