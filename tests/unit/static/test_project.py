"""Modules, imports, classes and names of a project on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts
from shapecheck.static.loader import Source
from shapecheck.static.owners import (
    is_draft_flag,
    last_axis_of_name,
    owner_of_name,
    size_of_name,
    size_owner_of_name,
)
from shapecheck.static.prefilter import Weight, can_matter, speaks, weight
from shapecheck.static.project import Project, find_files, module_name


def _project(root: Path, files: dict[str, str]) -> Project:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Project(root)


def test_names_are_followed_through_imports(tmp_path: Path) -> None:
    project = _project(
        tmp_path,
        {
            "pkg/__init__.py": "from .a import Thing as Other\n",
            "pkg/a.py": "class Thing: pass\ndef make(): pass\n",
            "pkg/sub/b.py": "import pkg.a, torch\nfrom .. import Other\nfrom ..a import make\n",
        },
    )
    module = project.module("pkg.sub.b")
    assert module is not None
    thing = project.resolve(module, "Other")
    assert isinstance(thing, ClassFacts)
    assert thing.name == "Thing"
    assert isinstance(project.resolve(module, "make"), FunctionFacts)
    assert isinstance(project.resolve(module, "pkg"), ModuleFacts)
    assert project.resolve(module, "torch") == "torch"
    assert project.resolve(module, "nothing") is None


def test_a_source_that_was_read_before_stands_in_for_the_file(tmp_path: Path) -> None:
    project = _project(tmp_path, {"pkg/__init__.py": "", "pkg/a.py": "old = 1\n"})
    project.given["pkg.a"] = Source(path="pkg/a.py", text="new = 1\n"), False
    project.given["pkg"] = Source(path="pkg/__init__.py", text="from .a import new\n"), True
    assert not project.modules
    module, package = project.module("pkg.a"), project.module("pkg")
    assert module is not None
    assert package is not None
    assert list(module.bindings) == ["new"]
    assert project.resolve(package, "new") == (module, module.bindings["new"])


def test_cyclic_imports_end(tmp_path: Path) -> None:
    project = _project(
        tmp_path, {"a.py": "from b import x\n", "b.py": "from a import x\nfrom b import y as y\n"}
    )
    module = project.module("a")
    assert module is not None
    assert project.resolve(module, "x") is None


def test_methods_are_found_in_bases_and_cycles_are_cut(tmp_path: Path) -> None:
    project = _project(
        tmp_path,
        {
            "a.py": "class Base:\n    def f(self): pass\n",
            "b.py": "from a import Base\nclass One(Base): pass\nclass Two(One, Two): pass\n",
        },
    )
    module = project.module("b")
    assert module is not None
    two = project.resolve(module, "Two")
    assert isinstance(two, ClassFacts)
    assert [one.name for one in project.mro(two)] == ["Two", "One", "Base"]
    assert project.method(two, "f") is not None
    assert project.method(two, "g") is None


@pytest.mark.parametrize(
    "annotation",
    ["Thing", "'Thing'", "Optional[Thing]", "Thing | None", "a.Thing", "Annotated[Thing, 1]"],
)
def test_annotations_name_classes(tmp_path: Path, annotation: str) -> None:
    project = _project(
        tmp_path,
        {
            "a.py": "class Thing: pass\n",
            "b.py": f"import a\nfrom a import Thing\ndef f(x: {annotation}): pass\n",
        },
    )
    module = project.module("b")
    assert module is not None
    function = project.resolve(module, "f")
    assert isinstance(function, FunctionFacts)
    found = project.class_of(module, function.node.args.args[0].annotation)
    assert found is not None
    assert found.name == "Thing"


def test_files_are_found_once_and_links_to_folders_are_left(tmp_path: Path) -> None:
    _project(tmp_path, {"a.py": "", "b/c.py": "", "b/__pycache__/d.py": "", "b/e.txt": ""})
    (tmp_path / "b" / "up").symlink_to(tmp_path, target_is_directory=True)
    assert [one.relative_to(tmp_path).as_posix() for one in find_files(tmp_path)] == [
        "a.py",
        "b/c.py",
    ]
    assert module_name(tmp_path / "b" / "c.py", tmp_path) == ("b.c", False)


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("target_worker", "target"),
        ("_target_model", "target"),
        ("draft_model_runner", "draft"),
        ("drafter", "draft"),
        ("assistant_model", "draft"),
        ("verifier", "target"),
        ("draft_tokens", ""),
        ("target_ids", ""),
        ("draft_to_target", ""),
        ("cuda_graph_runner_for_draft", ""),
        ("model", ""),
    ],
)
def test_owner_of_name(name: str, owner: str) -> None:
    assert owner_of_name(name) == owner


def test_size_names() -> None:
    assert size_of_name("hidden_size") == "hidden"
    assert size_of_name("spec_hidden_size") == "hidden"
    assert size_of_name("target_hidden_size") == "hidden"
    assert size_of_name("moe_hidden_size") == ""
    assert size_owner_of_name("target_hidden_size") == "target"
    assert size_owner_of_name("hidden_size") == ""
    assert last_axis_of_name("target_hidden_states") == "hidden"
    assert last_axis_of_name("next_token_logits") == "vocab"
    assert is_draft_flag("is_draft_worker")
    assert not is_draft_flag("draft")


def test_prefilter() -> None:
    assert can_matter("import torch\nclass DraftWorker: ...\n")
    assert can_matter("if a.shape == b.shape:\n    a.copy_(b)\n")
    assert not can_matter("import torch\nx = torch.zeros(3)\n")
    assert not can_matter("def draft_letter(): return 'text'\n")
    assert weight("def f(self):\n    return torch.zeros(3)\n") == Weight(works=True, tells=False)
    assert weight("def f(self, draft):\n    self.d = draft\n") == Weight(works=False, tells=True)
    assert weight("def f(self):\n    return 1\n") == Weight(works=False, tells=False)
    assert speaks("from shapecheck import contract\n" + "x = 1\n" * 50)
    assert speaks("class DraftState:\n" + "    x = 1\n" * 15)
    assert not speaks("class DraftState:\n" + "    x = 1\n" * 25)
