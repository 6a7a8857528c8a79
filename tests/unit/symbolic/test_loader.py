"""Loading one function out of a source tree, without its package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shapecheck.errors import ShapecheckError
from shapecheck.symbolic.loader import SourceTree
from shapecheck.symbolic.stub import Stub

FILES = {
    "pkg/__init__.py": "from pkg.helpers import *\nraise RuntimeError('the package needs a GPU')\n",
    "pkg/helpers.py": """
        import math
        SCALE = math.floor(2.5)
        def twice(x): return SCALE * x
        """,
    "pkg/sub/__init__.py": "",
    "pkg/sub/base.py": """
        from __future__ import annotations
        from dataclasses import dataclass
        from typing import ClassVar
        import compiled_kernel
        from ..helpers import twice as double

        FLAG = compiled_kernel.available()
        if FLAG:
            from compiled_kernel import fast
        else:
            def fast(x): return x + 1

        try:
            import missing_package
        except ImportError:
            missing_package = None

        @dataclass
        class Base:
            width: int = 3
            shared: ClassVar[int] = 4
            def grow(self): return double(self.width)

        class Child(Base, compiled_kernel.Mixin):
            def grow(self):
                from pkg.helpers import twice
                return super().grow() + twice(1)

        def uses_kernel(x): return compiled_kernel.run(x)
        def late(): return LATER
        LATER = fast(1)
        """,
    "pkg/broken.py": "def f(:\n",
}


@pytest.fixture
def tree(tmp_path: Path):
    from textwrap import dedent

    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    used: list[str] = []
    made = SourceTree(tmp_path, lambda name, given: used.append(name))
    yield made, used
    assert not any(name == "pkg" or name.startswith("pkg.") for name in sys.modules)


def test_a_method_with_its_base_and_helpers(tree):
    source, _ = tree
    child = source.load("pkg.sub.base:Child")
    assert child(width=5).grow() == 12
    assert [base.__name__ for base in child.__mro__] == ["Child", "Base", "object"]


def test_conditional_and_late_names(tree):
    source, _ = tree
    assert source.load("pkg.sub.base:late")() == 2


def test_star_imports_are_followed(tree):
    source, _ = tree
    assert source.load("pkg:twice")(4) == 8


def test_what_cannot_be_had_is_a_stub_that_says_it_was_used(tree):
    source, used = tree
    result = source.load("pkg.sub.base:uses_kernel")(3)
    assert isinstance(result, Stub)
    assert "compiled_kernel.run" in used


def test_the_file_and_line_are_those_of_the_source(tree):
    source, _ = tree
    code = source.load("pkg.helpers:twice").__code__
    assert Path(code.co_filename).name == "helpers.py"
    assert code.co_firstlineno == 4


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("pkg.helpers", "write MODULE:QUALNAME"),
        ("pkg.nothing:f", "no file of module pkg.nothing"),
        ("pkg.helpers:nothing", "defines no nothing"),
        ("pkg.broken:f", "cannot be parsed"),
        ("pkg.sub.base:Child.nothing", "defines no Child.nothing"),
    ],
)
def test_refusals_say_what_is_wrong(tree, target, said):
    source, _ = tree
    with pytest.raises(ShapecheckError, match=said):
        source.load(target)


def test_a_stub_takes_any_use():
    used: list[str] = []
    stub = Stub("kernel", lambda name, given: used.append(name))
    assert isinstance(stub[(1,)](2, key=3), Stub)
    assert list(stub.things) == []
    assert not stub
    assert used == ["kernel[...]", "kernel.things"]
