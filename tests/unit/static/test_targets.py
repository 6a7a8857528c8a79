"""What may be named as a target, and what is said of anything else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shapecheck.errors import ShapecheckError
from shapecheck.static.report import Inputs, Report, run

CLASH = (
    "import torch\n"
    "def f(draft_config, target_config, n):\n"
    "    a = torch.zeros(n, draft_config.hidden_size)\n"
    "    return torch.cat([a, torch.zeros(n, target_config.hidden_size)])\n"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    for name in ("one.py", "inner/two.py", "inner/deep/three.py"):
        (tmp_path / name).write_text(CLASH)
    return tmp_path


def _files(report: Report) -> list[str]:
    return sorted(
        str(one.root / finding.primary.path)
        for one in report.analyses
        for finding in one.findings
        if finding.primary
    )


def test_a_file_is_reported_once_however_often_it_is_named(tree: Path) -> None:
    names = [tree, tree / "inner", tree / "inner/two.py", tree / "inner" / "deep", tree / "one.py"]
    found = _files(run(tuple(map(str, names))))
    assert found == sorted(map(str, tree.rglob("*.py")))
    assert found == _files(run(tuple(map(str, reversed(names)))))


def test_links_that_form_a_loop_end(tree: Path) -> None:
    (tree / "inner" / "loop").symlink_to(tree)
    (tree / "self.py").symlink_to("self.py")
    found = _files(run((str(tree),)))
    assert len(found) == 4  # the link to itself is SHP903


def test_a_pipe_is_never_opened(tree: Path) -> None:
    os.mkfifo(tree / "pipe.py")
    report = run((str(tree),))
    assert {one.code for one in report.findings} == {"SHP301", "SHP903"}
    with pytest.raises(ShapecheckError, match="neither a file nor a folder"):
        run((str(tree / "pipe.py"),))


def test_an_empty_name_is_not_the_current_folder() -> None:
    with pytest.raises(ShapecheckError, match="no such file"):
        run(("",))


def test_a_folder_that_cannot_be_listed_is_said(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    report = run((str(tree),), inputs=Inputs())
    unread = [one for one in report.findings if one.code == "SHP903"]
    assert [one.primary.path for one in unread if one.primary] == ["inner/deep"]


def test_a_library_beside_the_engine_keeps_its_operators(tree: Path) -> None:
    """As in site-packages: the operators are known by their table, not by the library's source."""
    (tree / "torch").mkdir()
    (tree / "torch" / "__init__.py").write_text("from torch._C import *\n")
    assert len(_files(run((str(tree),)))) == 3
