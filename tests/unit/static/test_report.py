"""Whole runs: exit status, counts, scope, hostile trees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from shapecheck.cli.lint import lint
from shapecheck.errors import ShapecheckError
from shapecheck.rules.owners_meet import BAD, GOOD
from shapecheck.static.report import import_root, run


def _invoke(*arguments: str):
    return CliRunner().invoke(lint, list(arguments))


def test_findings_go_to_stdout_and_the_summary_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    result = _invoke(str(tmp_path), "--output-format", "concise")
    assert result.exit_code == 1
    assert result.stdout.startswith("a.py:5:")
    assert "SHP301" in result.stdout
    assert "1 finding in 1 files" in result.stderr


def test_clean_file_exits_zero(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(GOOD)
    result = _invoke(str(tmp_path / "a.py"))
    assert result.exit_code == 0
    assert result.stdout == ""


def test_json_is_version_one(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    document = json.loads(_invoke(str(tmp_path), "--output-format", "json").stdout)
    assert document["version"] == 1
    (finding,) = document["findings"]
    assert finding["code"] == "SHP301"
    assert finding["dims"] == {"expected": "target_hidden", "found": "draft_hidden"}
    assert finding["primary"] == {"path": "a.py", "line": 5, "column": 33}
    assert {note["label"] for note in finding["notes"]} >= {"why draft", "why target", "meets"}
    assert document["summary"]["tier"] == "lint"
    assert document["summary"]["files"] == 1
    assert document["summary"]["dim_reads_with_owner"] == 2
    assert document["summary"]["creations_with_owner"] == 2


def test_nothing_resolved_is_said_and_exits_two(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    result = _invoke(str(tmp_path))
    assert result.exit_code == 2
    assert "nothing was resolved" in result.stderr


def test_missing_path_exits_two() -> None:
    result = _invoke("/no/such/path")
    assert result.exit_code == 2
    assert "no such file or folder" in result.stderr


def test_unknown_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(GOOD)
    assert _invoke(str(tmp_path), "--select", "SHP999").exit_code == 2


def test_select_and_ignore(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    assert run((str(tmp_path),), select=frozenset({"SHP302"})).findings == ()
    assert run((str(tmp_path),), ignore=frozenset({"SHP301"})).findings == ()
    assert len(run((str(tmp_path),), select=frozenset({"SHP301"})).findings) == 1


def test_exit_zero(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    assert _invoke(str(tmp_path), "--exit-zero").exit_code == 0


def test_unreadable_file_is_named_and_the_others_are_linted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    (tmp_path / "broken.py").write_text("import torch, draft\ndef f(:\n")
    report = run((str(tmp_path),))
    assert {one.code for one in report.findings} == {"SHP301", "SHP903"}
    assert report.exit_status == 1


def test_only_unreadable_exits_two(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_bytes(b"import torch, draft\0")
    assert run((str(tmp_path),)).exit_status == 2


def test_findings_outside_the_target_are_not_reported(tmp_path: Path) -> None:
    package = tmp_path / "engine"
    (package / "sub").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sub" / "__init__.py").write_text("")
    (package / "lower.py").write_text(BAD)
    caller = (
        "import torch\nfrom engine.lower import fill\n\ndef use(draft_config, target_config):\n"
    )
    caller += "    fill(draft_config, target_config, 3)\n"
    (package / "sub" / "upper.py").write_text(caller)
    assert run((str(package / "sub"),)).findings == ()
    assert len(run((str(package),)).findings) == 1


def test_import_root_is_above_the_outermost_package(tmp_path: Path) -> None:
    inner = tmp_path / "pkg" / "sub"
    inner.mkdir(parents=True)
    (tmp_path / "pkg" / "__init__.py").write_text("")
    assert import_root(inner) == tmp_path
    assert import_root(tmp_path) == tmp_path


def test_hostile_tree_is_survived(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "folder.py" / "inner.py").write_text(BAD)
    (tmp_path / "one.py").write_text("from two import *\nfrom two import draft_x\nimport torch\n")
    (tmp_path / "two.py").write_text("from one import draft_x\nimport torch\n")
    report = run((str(tmp_path),))
    codes = {(one.primary.path, one.code) for one in report.findings if one.primary}
    assert codes == {("folder.py/inner.py", "SHP301"), ("dangling.py", "SHP903")}


DEEP = {
    "attributes": "import torch\ndef f(draft):\n    return draft" + ".a" * 3000 + "\n",
    "sum": "import torch\ndef f(draft):\n    return " + "+".join(["draft"] * 3000) + "\n",
    "calls": "import torch\ndef f(draft):\n    return draft" + "()" * 2000 + "\n",
    "elifs": "import torch\ndef f(draft):\n    if draft == 0:\n        pass\n"
    + "".join(f"    elif draft == {n}:\n        x = torch.zeros({n})\n" for n in range(1, 400)),
    "bases": "import torch\nclass A(B): draft = 1\nclass B(A): pass\n",
    "self base": "import torch\nclass A(A):\n    def draft(self): return super().draft()\n",
    "recursion": "import torch\ndef draft(x): return draft(x)\n",
    "mutual": "import torch\ndef draft(x): return g(x)\ndef g(x): return draft(x)\n",
    "property": "import torch\nclass A:\n    @property\n    def draft(self): return self.draft\n",
    "global cycle": "import torch\ndraft = other\nother = draft\ndef f(): return draft\n",
    "surrogate": "import torch\ndraft = '\\ud800'\n",
    "huge number": "import torch\ndef f(draft): return torch.zeros(10 ** 999999)\n",
    "lambda default": "import torch\ndef f(draft=lambda: (yield)): return draft\n",
}


@pytest.mark.parametrize("name", DEEP)
def test_odd_programs_are_survived(name: str, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(DEEP[name], encoding="utf-8")
    report = run((str(tmp_path),))
    assert {one.code for one in report.findings} <= {"SHP903"}


def test_release_without_the_subpath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "releases" / "py-pyi" / "thing-1.0"
    (root / "thing").mkdir(parents=True)
    (root / ".complete").touch()
    monkeypatch.setenv("SHAPECHECK_CACHE_DIR", str(tmp_path))
    with pytest.raises(ShapecheckError, match="top level holds thing"):
        run(("pypi:thing==1.0:thing/missing",))


def test_paths_of_a_release_are_those_inside_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "releases" / "py-pyi" / "thing-1.0"
    (root / "thing").mkdir(parents=True)
    (root / ".complete").touch()
    (root / "thing" / "a.py").write_text(BAD)
    monkeypatch.setenv("SHAPECHECK_CACHE_DIR", str(tmp_path))
    (finding,) = run(("pypi:thing==1.0:thing",)).findings
    assert finding.primary is not None
    assert finding.primary.path == "thing/a.py"
